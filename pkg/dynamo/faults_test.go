package dynamo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// faultyCalls is a plan in which every sixth call of an operation goes wrong, each
// time in another way, so that a workload meets every fault some number of times.
func faultyCalls() dynamofake.Plan {
	f := func(kinds ...dynamofake.Kind) []dynamofake.Kind { return kinds }
	kinds := map[string][]dynamofake.Kind{
		"UpdateItem":   f(dynamofake.Throttle, dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.HoldRequest, dynamofake.Conflict, dynamofake.Duplicate, dynamofake.ServerError, dynamofake.HoldReply),
		"GetItem":      f(dynamofake.Throttle, dynamofake.ServerError, dynamofake.LoseReply),
		"BatchGetItem": f(dynamofake.Partial, dynamofake.Throttle, dynamofake.Partial, dynamofake.LoseReply),
	}
	return func(c dynamofake.Call) dynamofake.Fault {
		if all := kinds[c.Op]; c.N%6 == 0 && len(all) > 0 {
			return dynamofake.Fault{Kind: all[c.N/6%len(all)]}
		}
		return dynamofake.Fault{}
	}
}

// besieged are replicas whose calls go wrong on the way to DynamoDB Local. They all
// use a few buckets, in rounds: the clock stands still in one and moves on a second
// before the next.
type besieged struct {
	*testing.T
	proxy    *dynamotest.Proxy
	replicas []*dynamo.Store
	limit    limiter.Limit

	taken  [][]atomic.Int64 // millitokens admitted less what may have been given back, by bucket and round
	failed atomic.Int64     // calls that ended in an error
}

const besiegedBuckets, besiegedRounds = 4, 3

func besiege(t *testing.T) *besieged {
	t.Helper()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), server.Client(t), table); err != nil {
		t.Fatal(err)
	}
	b := &besieged{T: t, proxy: dynamotest.NewProxy(t, server.URL, nil), limit: limiter.PerSecond("l", 60)}
	for range 3 {
		b.replicas = append(b.replicas, newStore(t, dynamotest.NewClient(b.proxy.URL, nil), func(cfg *dynamo.Config) {
			cfg.Table, cfg.Attempt = table, 500*time.Millisecond
		}))
	}
	t.Cleanup(func() { closing(t, b.replicas...) })
	b.taken = make([][]atomic.Int64, besiegedBuckets)
	for i := range b.taken {
		b.taken[i] = make([]atomic.Int64, besiegedRounds)
		ref := limiter.EntityLimitsRef(fmt.Sprint("e", i), "r")
		if err := b.replicas[0].PutLimits(t.Context(), "default", ref, limiter.Record{Limits: limitsOf(t, b.limit)}); err != nil {
			t.Fatal(err)
		}
	}
	b.proxy.SetPlan(faultyCalls())
	return b
}

// round has callers of all replicas use all buckets, at one time.
func (b *besieged) round(round int) {
	b.Helper()
	var g errgroup.Group
	for caller := range 8 * len(b.replicas) {
		r := rand.New(rand.NewPCG(uint64(round), uint64(caller))) // #nosec G404 G115 -- repeatable
		s := b.replicas[caller%len(b.replicas)]
		g.Go(func() error { return b.call(s, r, round) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

// call is one caller: takes, gives some of it back, charges a little, and reads
// the limits before each.
func (b *besieged) call(s *dynamo.Store, r *rand.Rand, round int) error {
	for range 8 {
		bucket := r.IntN(besiegedBuckets)
		if err := b.readLimits(s, bucket); err != nil {
			return err
		}
		took, err := b.spend(s, bucket, round, limiter.Spend{Take: tokens(1 + r.Int64N(3))})
		if err == nil && took > 0 && r.IntN(4) == 0 {
			_, err = b.spend(s, bucket, round, limiter.Spend{Refund: took})
		} else if err == nil && r.IntN(8) == 0 {
			_, err = b.spend(s, bucket, round, limiter.Spend{Charge: tokens(1)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spend returns what was certainly taken. Errors that a caller has to live with are none.
func (b *besieged) spend(s *dynamo.Store, bucket, round int, sp limiter.Spend) (took int64, err error) {
	sp.Limit = b.limit.Name
	set, err := limiter.NewLimits(b.limit)
	if err != nil {
		return 0, err
	}
	key := limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("e", bucket), Resource: "r"}
	b.taken[bucket][round].Add(-sp.Refund) // perhaps
	ok, err := s.Take(b.Context(), after(float64(round)), []limiter.Op{{Bucket: key, Limits: set, Generation: 1, Spends: []limiter.Spend{sp}}})
	switch {
	case errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain):
		b.failed.Add(1)
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%+v: %w", sp, err)
	case ok:
		b.taken[bucket][round].Add(sp.Take)
		return sp.Take, nil
	}
	return 0, nil
}

// readLimits demands that limits which are stored are never read as none.
func (b *besieged) readLimits(s *dynamo.Store, bucket int) error {
	refs := []limiter.Ref{limiter.SystemLimitsRef(), limiter.EntityRef("e"), limiter.ResourceLimitsRef("r"), limiter.EntityLimitsRef(fmt.Sprint("e", bucket), "r")}
	records := make([]limiter.Record, len(refs))
	_, err := s.Read(b.Context(), "default", refs, records)
	switch {
	case errors.Is(err, limiter.ErrUnavailable):
		b.failed.Add(1)
		return nil
	case err != nil:
		return fmt.Errorf("reading the limits of bucket %d: %w", bucket, err)
	case records[3].Empty():
		return fmt.Errorf("the limits of bucket %d, which are stored, were read as none", bucket)
	}
	return nil
}

// Whatever goes wrong on the way, no interval has more admissions than the limit
// allows, limits that were not read are never none, and the replicas go on.
func TestNothingIsWonByFaults(t *testing.T) {
	b := besiege(t)
	for round := range besiegedRounds {
		b.round(round)
	}
	b.proxy.Require(t, dynamofake.Throttle, dynamofake.Conflict, dynamofake.ServerError, dynamofake.AppliedError,
		dynamofake.LoseReply, dynamofake.HoldRequest, dynamofake.HoldReply, dynamofake.Duplicate, dynamofake.Partial)
	capacity, total := tokens(b.limit.Capacity), int64(0)
	for bucket := range b.taken {
		for first := range besiegedRounds {
			var sum int64
			for last := first; last < besiegedRounds; last++ {
				sum += b.taken[bucket][last].Load()
				if most := capacity + capacity*int64(last-first); sum > most { // refills its capacity in a second
					t.Errorf("bucket %d, rounds %d to %d: %d millitokens admitted, at most %d may be", bucket, first, last, sum, most)
				}
				if first == 0 && last == besiegedRounds-1 {
					total += sum
				}
			}
		}
	}
	if least := capacity * besiegedBuckets; total < least {
		t.Errorf("%d millitokens admitted, %d calls failed; want at least %d", total, b.failed.Load(), least)
	}
	t.Logf("%d millitokens admitted, %d calls failed, faults %v", total, b.failed.Load(), b.proxy.Faults())
}
