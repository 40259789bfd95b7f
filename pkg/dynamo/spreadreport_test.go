package dynamo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A denial by several shards says of the limits that they have too little of together
// that they were exceeded, and of no others; where they seem to have enough of all, of
// those that could not be got together.
func TestADenialByShardsNamesTheLimitsThatLack(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.Custom("a", 10, 1, time.Hour), limiter.Custom("b", 10, 1, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(simStart)
	for _, tc := range []struct {
		name string
		each map[string]int64 // what each of the two shards has
		want map[string]bool
	}{
		{"one lacks", map[string]int64{"a": 1000, "b": 5000}, map[string]bool{"a": true, "b": false}},
		{"both lack", map[string]int64{"a": 1000, "b": 1000}, map[string]bool{"a": true, "b": true}},
		{"neither seems to", map[string]int64{"a": 2000, "b": 2000}, map[string]bool{"a": true, "b": true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op := limiter.Op{Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "a", Take: 3000}, {Limit: "b", Take: 3000}}}
			r, err := newRequest(simStart, &op)
			if err != nil {
				t.Fatal(err)
			}
			b := newBranch(r, 0)
			b.now, b.over = simStart, true
			b.tree = &tree{site: b.site, seen: make(map[int]sight)}
			for i := range 2 {
				v := fullView(limits, 1, simStart)
				v.shard = schema.Shard{Index: i, Level: 2}
				for j := range v.balances {
					x := &v.balances[j]
					x.params, x.state.Tokens = v.shard.Share(x.whole), tc.each[x.limit.Name]
				}
				b.tree.seen[i] = sight{view: v, at: now}
				part := b.op.copyTo(b.site.shard(i))
				newStage(v, simStart).weigh(part)
				newStage(v, simStart).tell(part)
				b.add(part)
			}
			b.report(&op, false, now)
			got := make(map[string]bool)
			for _, sp := range op.Spends {
				got[sp.Limit] = sp.Exceeded
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("exceeded (-want +got):\n%s", diff)
			}
		})
	}
}
