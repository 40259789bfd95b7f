package catalog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

const storedNS = "namespaceid"

// shelf is a table with stored limits.
type shelf struct {
	*testing.T

	db    *dynamofake.DB
	notes *catalog.BudgetNotes
	now   time.Time
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{T: t, db: dynamofake.New(), now: time.Unix(1_800_000_000, 0)}
	if err := dynamo.CreateTable(t.Context(), s.db, "buckets"); err != nil {
		t.Fatal(err)
	}
	s.notes = catalog.NewBudgetNotes(awsdb.ItemsOf(s.db, "buckets"), "buckets", func() time.Time { return s.now })
	return s
}

// put stores limits, with a budget of tokens a day unless that is 0.
func (s *shelf) put(ref limiter.Ref, tokens int64) {
	s.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 1))
	if err != nil {
		s.Fatal(err)
	}
	r := limiter.Record{Limits: limits}
	if tokens > 0 {
		if r.Budgets, err = limiter.NewBudgets(limiter.Budget{Limit: "l", Window: limiter.UsageDay, Tokens: tokens}); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := s.db.PutItem(s.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: schema.LimitsItem(storedNS, ref, r, 1)}); err != nil {
		s.Fatal(err)
	}
}

// wants requires the budgets of a day at the places of a bucket: 0 = limits without one, -1 = no limits.
func (s *shelf) wants(when, entity, resource string, want [4]int64) {
	s.Helper()
	stored, err := s.notes.StoredBudgets(s.Context(), aggregator.Bucket{Namespace: storedNS, Entity: schema.EscapeName(entity), Resource: schema.EscapeName(resource)})
	if err != nil {
		s.Fatalf("%s: %v", when, err)
	}
	got := [4]int64{}
	for i, at := range stored {
		b, _ := at.Budgets.Of("l", limiter.UsageDay)
		got[i] = b.Tokens
		if at.Limits == nil {
			got[i] = -1
		}
	}
	if got != want {
		s.Errorf("%s: %s for %s has %v, want %v", when, entity, resource, got, want)
	}
}

// The stored limits of each place are found, of names of any length and bytes.
func TestStoredBudgets(t *testing.T) {
	s := newShelf(t)
	long := strings.Repeat("é#", 2*schema.MaxNameAttribute)
	s.put(limiter.EntityLimitsRef(long, "r/1"), 1)
	s.put(limiter.EntityLimitsRef(long, limiter.DefaultResource), 2)
	s.put(limiter.ResourceLimitsRef("r/1"), 3)
	s.put(limiter.ResourceLimitsRef(long), 0)
	s.wants("without limits of the system", long, "r/1", [4]int64{1, 2, 3, -1})
	s.put(limiter.SystemLimitsRef(), 4)
	s.now = s.now.Add(time.Minute)
	s.wants("with all", long, "r/1", [4]int64{1, 2, 3, 4})
	s.wants("of another entity", "e", long, [4]int64{-1, -1, 0, 4})
	s.put(limiter.EntityLimitsRef("e", limiter.DefaultResource), 5)
	s.wants("a resource with the name of the default one", "e", limiter.DefaultResource, [4]int64{-1, -1, -1, 4})
	s.now = s.now.Add(time.Minute)
	s.wants("after a minute", "e", limiter.DefaultResource, [4]int64{5, 5, -1, 4})
	deleted := schema.Tombstone(storedNS, schema.KeyOfRef(storedNS, limiter.SystemLimitsRef()), limiter.RefSystemLimits, 2, s.now)
	if _, err := s.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: deleted}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Minute)
	s.wants("deleted", "e", "r", [4]int64{-1, 5, -1, -1})
}

// Limits are read once in a minute for each place, also where there are none, and at once when the clock is set back.
func TestStoredBudgetsAreRemembered(t *testing.T) {
	s := newShelf(t)
	none := [4]int64{-1, -1, -1, -1}
	for range 100 {
		s.wants("again and again", "e", "r", none)
		s.now = s.now.Add(599 * time.Millisecond)
	}
	if n := s.db.Count("BatchGetItem"); n != 1 {
		t.Errorf("%d reads in a minute, want 1", n)
	}
	s.now = s.now.Add(-time.Hour)
	s.wants("with an earlier clock", "e", "r", none)
	if n := s.db.Count("BatchGetItem"); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
}

// A call that fails is made again, one that a role does not allow too, and limits that cannot be read
// stop nothing.
func TestStoredBudgetsThatCannotBeRead(t *testing.T) {
	s := newShelf(t)
	s.put(limiter.ResourceLimitsRef("r"), 3)
	bad := schema.LimitsItem(storedNS, limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny}, 1)
	bad["b_l_day"] = schema.NumberAttribute(-1)
	if _, err := s.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: bad}); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]dynamofake.Fault{
		"denied":  {Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}},
		"in part": {Kind: dynamofake.Partial},
	} {
		s.db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return fault })
		_, err := s.notes.StoredBudgets(t.Context(), aggregator.Bucket{Namespace: storedNS, Entity: "e", Resource: "r"})
		if !errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, limiter.ErrUnavailable)
		}
	}
	s.db.SetPlan(nil)
	s.wants("later", "e", "r", [4]int64{-1, -1, 3, -1})
}
