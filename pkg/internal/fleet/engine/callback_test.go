package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A call that is not admitted gives back the take of each shard of each bucket. Parts with a late
// decision are the lane's. If the caller is admitted all the same, its tokens stay taken.
func TestEachShardGetsItsPartBack(t *testing.T) {
	failure := errors.New("a shard did not answer")
	for name, tt := range map[string]struct {
		keep, late bool
		failed     error
		want       int64
	}{
		"denied":                       {want: 4},
		"denied, of those who keep":    {keep: true, want: 4},
		"failed":                       {failed: failure, want: 4},
		"failed, of those who keep":    {keep: true, failed: failure},
		"invalid, of those who keep":   {keep: true, failed: limiter.ErrInvalid, want: 4},
		"decided late, one per branch": {late: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newQuiet(t)
				c := &call{engine: e}
				for _, entity := range []string{"a", "b"} {
					b := &branch{site: lane.Site{Namespace: "n", Bucket: limiter.BucketKey{Entity: entity, Resource: "r"}}}
					for index := range 2 {
						r := &lane.Request{Request: taken(t), Site: &b.site, Index: index, Keep: tt.keep}
						b.asked = append(b.asked, asked{part: &Part{Index: index, Request: r.Request}, request: r, late: tt.late && index == 0})
					}
					c.branches = append(c.branches, b)
				}
				c.giveBack(tt.failed)
				if got := e.lanes.Counters.Owed.Load(); got != tt.want {
					t.Errorf("%d parts are given back, want %d", got, tt.want)
				}
			})
		})
	}
}

// A call of which one bucket failed gives back the takes of the others, also if each of them gave all its
// tokens.
func TestAFailedBucketGivesBackTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newQuiet(t)
		c := &call{engine: e}
		for entity, err := range map[string]error{"a": nil, "b": limiter.ErrUnavailable} {
			id := ShardID{Namespace: "n", Bucket: limiter.BucketKey{Entity: entity, Resource: "r"}}
			b := &branch{site: lane.Site(id)}
			b.Branch = *NewBranch(id, &plan.Request{Limits: taken(t).Limits}, 0, 0) // it wants no more
			r := &lane.Request{Request: taken(t), Site: &b.site, Err: err}
			b.asked = []asked{{part: &Part{Request: r.Request, Err: err}, request: r}}
			c.branches = append(c.branches, b)
		}
		admitted, err := c.decide(make([]limiter.Op, 2))
		if admitted || !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("admitted: %t, %v; want an error", admitted, err)
		}
		if got := e.lanes.Counters.Owed.Load(); got != 1 {
			t.Errorf("%d parts are given back, want that of the bucket that answered", got)
		}
	})
}

// newQuiet returns an engine whose table answers nothing.
func newQuiet(t *testing.T) *Engine {
	t.Helper()
	db := dynamofake.New()
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
	id := func(context.Context, string) (string, error) { return "n", nil }
	e, err := NewIdle(Config{StoreConfig: StoreConfig{Table: "t"}, Items: awsdb.ItemsOf(db, "t"), Namespace: id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Millisecond)
		defer cancel()
		_ = e.Close(ctx) // the table does not accept its writes, so it owes them
	})
	return e
}

// taken is a request that took five tokens.
func taken(t *testing.T) *plan.Request {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	const n = 5 * limiter.Milli
	return &plan.Request{Limits: limits, Generation: 1, Admitted: true, Spends: []plan.Spend{{Limit: "l", Need: n, Take: n, Back: n, Held: true}}}
}
