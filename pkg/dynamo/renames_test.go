package dynamo_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// DynamoDB takes 300 operators and 4,096 bytes in an expression. With any limits an
// expression stays below these.
const (
	mostOperators = 220
	mostBytes     = 3000
)

// sized measures the expressions of updates.
type sized struct {
	*dynamofake.DB

	mu               sync.Mutex
	operators, bytes int // the most so far
}

func (s *sized) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	s.mu.Lock()
	for _, expression := range [...]*string{in.ConditionExpression, in.UpdateExpression} {
		if expression == nil {
			continue
		}
		s.bytes = max(s.bytes, len(*expression))
		n := strings.Count(*expression, "#") + strings.Count(*expression, " AND ")
		if expression == in.UpdateExpression {
			n = strings.Count(*expression, "-")
		}
		s.operators = max(s.operators, n)
	}
	s.mu.Unlock()
	return s.DB.UpdateItem(ctx, in, opts...)
}

// TestABucketNeverBricks: every decision of a bucket is made while limits come, go and
// change in any way, with token leases and without. No limit gives at one instant more
// than its greatest capacity.
func TestABucketNeverBricks(t *testing.T) {
	rapidChecks(t, renamedBuckets)
	for name, change := range map[string]func(*dynamo.Config){"leases": withLeases, "no leases": nil} {
		client := &sized{DB: newTable(t)}
		s := newStore(t, client, change)
		run := 0
		rapid.Check(t, func(t *rapid.T) {
			run++
			r := renames{T: t, store: s, entity: fmt.Sprint("e", run), given: make(map[string]int64), most: make(map[string]int64)}
			r.names = rapid.IntRange(1, 60).Draw(t, "names")
			for range rapid.IntRange(1, 40).Draw(t, "changes") {
				r.change()
			}
			r.later()
		})
		if client.operators > mostOperators || client.bytes > mostBytes {
			t.Errorf("%s: expressions of up to %d operators and %d bytes, want %d and %d at most", name, client.operators, client.bytes, mostOperators, mostBytes)
		}
		t.Logf("%s: expressions of up to %d operators and %d bytes", name, client.operators, client.bytes)
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// renames is one bucket in a random sequence of limits.
type renames struct {
	*rapid.T

	store       *dynamo.Store
	entity      string
	names       int
	generation  uint64
	given, most map[string]int64 // by limit, millitokens
}

// change puts the bucket under other limits and takes, mostly more than there is.
func (r *renames) change() {
	n := rapid.SampledFrom([]int{1, 2, 8, 15, 16, 16, 16}).Draw(r.T, "limits")
	first := rapid.IntRange(0, r.names-1).Draw(r.T, "first")
	limits, spends := make([]limiter.Limit, 0, n), make([]limiter.Spend, 0, n)
	for i := range min(n, r.names) {
		name := fmt.Sprintf("%s%02d", strings.Repeat("n", limiter.MaxLimitName-2), (first+i)%r.names)
		capacity := rapid.SampledFrom([]int64{1, 7, 50, 1_000_000}).Draw(r.T, "capacity")
		limits = append(limits, limiter.Custom(name, capacity, 1, 24*time.Hour).WithMaxDebt(rapid.SampledFrom([]int64{0, 3, limiter.NoDebt}).Draw(r.T, "debt")))
		sp := limiter.Spend{Limit: name, Take: limiter.Milli * rapid.Int64Range(0, capacity).Draw(r.T, "take")}
		if rapid.IntRange(0, 5).Draw(r.T, "charge") == 0 {
			sp.Take, sp.Charge = 0, limiter.Milli*capacity
		}
		spends = append(spends, sp)
		r.most[name] = max(r.most[name], capacity*limiter.Milli)
	}
	r.generation++
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		r.Fatal(err)
	}
	for _, sp := range append(spends, limiter.Spend{Limit: limits[0].Name, Look: true}) {
		if op := r.take(set, sp, epochTime); op.Spends[0].Held && !op.Spends[0].Exceeded {
			r.given[sp.Limit] += sp.Take
			if r.given[sp.Limit] > r.most[sp.Limit] {
				r.Fatalf("%s gave %d millitokens at one instant, want %d at most", sp.Limit, r.given[sp.Limit], r.most[sp.Limit])
			}
		}
	}
}

var epochTime = time.UnixMilli(4_102_444_800_000)

func (r *renames) take(set *limiter.Limits, sp limiter.Spend, now time.Time) limiter.Op {
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: r.entity, Resource: "r"},
		Limits: set, Generation: r.generation, Spends: []limiter.Spend{sp},
	}
	if _, err := r.store.Take(r.Context(), now, []limiter.Op{op}); err != nil {
		r.Fatalf("generation %d: %v", r.generation, err)
	}
	return op
}

// later wants the bucket to be as good as new when all has been made up for.
func (r *renames) later() {
	r.generation++
	set, err := limiter.NewLimits(limiter.PerDay("new", 10), limiter.PerDay("n2", 5))
	if err != nil {
		r.Fatal(err)
	}
	const long = 20_000_000 * 86_400_000 // ms: the slowest refills a token a day
	now := epochTime
	for i := range int64(3) { // leases end in between
		now = time.UnixMilli(epochTime.UnixMilli() + (i+1)*long)
		r.take(set, limiter.Spend{Limit: "n2", Take: 1}, now)
	}
	if op := r.take(set, limiter.Spend{Limit: "new"}, now); op.Spends[0].Bucket.Tokens != 10*tokenbucket.Milli {
		r.Fatalf("a limit that never was has %+v in the end", op.Spends[0].Bucket)
	}
}
