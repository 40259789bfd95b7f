package dynamo

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A process that finds a number under its name which it has not come to yet draws another
// name, once, and serves nothing more of what it holds on lease. Its own numbers, and those
// of others, are no reason.
func TestACopyGetsAnotherName(t *testing.T) {
	for _, test := range []struct {
		name    string
		attr    string
		id      func(s *Store) string
		renamed uint64
	}{
		{"a write of the copy", "lw7", func(s *Store) string { return s.self() + ":" + s.numbered(s.writes.Load()+1) }, 1},
		{"a turn of the copy", schema.AttrTurn, func(s *Store) string { return s.self() + ":" + s.numbered(s.writes.Load()+1000) }, 1},
		{"a write of its own", "lw7", func(s *Store) string { return s.self() + ":" + s.numbered(s.writes.Load()) }, 0},
		{"a write of another", "lw7", func(s *Store) string { return "OTHERNAME:" + s.numbered(s.writes.Load()+1000) }, 0},
		{"no number", "lw7", func(s *Store) string { return s.self() + ":" }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := bucketTable(t)
				var log bytes.Buffer
				s, err := New(Config{Client: db, Table: simTable, Leases: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				defer closeStores(t, s)
				take := func() {
					t.Helper()
					o := opOn(t, "e", limiter.PerDay("l", 1_000_000), limiter.Spend{Take: limiter.Milli})
					if ok, err := s.Take(t.Context(), time.Now(), []limiter.Op{o}); !ok || err != nil {
						t.Fatal(ok, err)
					}
					synctest.Wait()
				}
				for s.Stats().Leases == 0 {
					take()
				}
				name, l := s.self(), s.leases.list()[0]
				if _, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String(simTable), Key: l.key.Attributes(), UpdateExpression: aws.String("SET #a = :a"),
					ExpressionAttributeNames:  map[string]string{"#a": test.attr},
					ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberS{Value: test.id(s)}},
				}); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := s.sight(l); err != nil {
						t.Fatal(err)
					}
				}
				if got := s.renamed.Load(); got != test.renamed || (s.self() == name) != (got == 0) || strings.Count(log.String(), "\n") != int(got) { // #nosec G115 -- few
					t.Errorf("renamed %d times, from %q to %q, want %d times; the log has\n%s", got, name, s.self(), test.renamed, log.String())
				}
				if alive := l.holder.alive(time.Now(), s.era()) && l.holder.text != ""; alive != (test.renamed == 0) {
					t.Errorf("the lease is served: %t, after %d renamings", alive, test.renamed)
				}
				take()
			})
		})
	}
}

// An id ends in letters that are drawn for it alone, also where two processes have the
// same name and come to the same number.
func TestIdsOfCopiesDiffer(t *testing.T) {
	one, other := newStore(Config{}, awsdb.Goroutines{}, "SAMENAME1"), newStore(Config{}, awsdb.Goroutines{}, "SAMENAME1")
	same := 0
	const tries = 100
	for range tries {
		x, y := one.nextID(nil).id, other.nextID(nil).id
		if same++; x != y {
			same--
		}
		number, _ := strings.CutPrefix(x, "SAMENAME1:")
		if got, want := numberOf(number), one.writes.Load(); got != want || replicaOf(x) != "SAMENAME1" {
			t.Errorf("%q has the number %d, want %d", x, got, want)
		}
	}
	if same > tries/10 {
		t.Errorf("%d of %d ids are the same", same, tries)
	}
}
