package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// now is when the tests are, in Unix ms.
const now int64 = 1_800_000_000_000

func atNow() time.Time { return time.UnixMilli(now) }

// capacity is that of the bucket, in tokens.
const capacity = 1000

// grove is a bucket in several shards, and the last state that a process saw of them.
type grove struct {
	id     engine.ShardID
	limits *limiter.Limits
	forest engine.Forest
	states map[int]*schema.Bucket
	writes int
}

// newGrove returns a bucket of n shards with that many millitokens, by index.
func newGrove(t rapid.TB, tokens []int64) *grove {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("l", capacity, 200, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	g := &grove{id: engine.ShardID{Namespace: "n", Bucket: limiter.BucketKey{Entity: "e"}}, limits: limits, states: make(map[int]*schema.Bucket)}
	for i, n := range tokens {
		b := schema.NewBucket(limits, 1, now)
		b.Serial = 1
		b.Shard = schema.Shard{Index: i, Level: len(tokens), Epoch: 1}
		b.Balances[0] = b.Shard.NewBalance(limits.At(0), now)
		g.states[i] = b
		g.spend(i, b.Balances[0].Share.Capacity-n)
	}
	return g
}

// sees has the process see a shard as it is now.
func (g *grove) sees(index int) {
	g.forest.Saw(&g.id, index, 0, engine.Sight{State: g.states[index], At: time.UnixMilli(now)})
}

// spend has a shard have that many millitokens less.
func (g *grove) spend(index int, n int64) {
	g.decide(index, &plan.Request{Limits: g.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Need: n, Take: n}}})
}

// giveBack has a shard have that many millitokens more.
func (g *grove) giveBack(index int, n int64) {
	g.decide(index, &plan.Request{Limits: g.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Give: n, Usage: -n}}})
}

// decide decides a request by the state of a shard, as its lane does.
func (g *grove) decide(index int, r *plan.Request) {
	stage := plan.NewStage(g.states[index], now, plan.Options{})
	if verdict := stage.Weigh(r); verdict == plan.Commutes || verdict == plan.Exact {
		stage.Apply(r)
		g.writes++
		g.states[index] = stage.Write(plan.ID{Write: schema.NewWriteID(1, uint64(g.writes))}, 1).After() // #nosec G115 -- above 0
	}
}

// left returns the millitokens of all shards.
func (g *grove) left() (sum int64) {
	for _, b := range g.states {
		sum += plan.At(b, now).Tokens(0, now)
	}
	return sum
}

// take carries out a branch for n millitokens, alone, and gives back takes that were in
// vain.
func (g *grove) take(n int64) (admitted bool) {
	op := &plan.Request{Limits: g.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Need: n, Take: n}}}
	b := engine.NewBranch(g.id, op, 0, now)
	defer b.Leave()
	for {
		parts := b.Next(&g.forest, atNow)
		if len(parts) == 0 || b.Denied() {
			break
		}
		for _, p := range parts {
			g.decide(p.Index, p.Request)
		}
		b.Harvest()
	}
	if b.Met() {
		return true
	}
	for _, p := range b.Parts() {
		if undo := p.Request.Undo(); undo != nil {
			g.decide(p.Index, undo)
		}
	}
	return false
}

// A request alone is admitted where all shards together have its tokens, and only there,
// after any states that the process saw before. It takes all that it asks for, else
// nothing.
func TestABranchCollectsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := 1 << rapid.IntRange(1, 5).Draw(t, "splits")
		tokens := make([]int64, level)
		for i := range tokens {
			tokens[i] = rapid.Int64Range(0, 2*limiter.Milli).Draw(t, "tokens")
		}
		g := newGrove(t, tokens)
		for i := range tokens {
			g.sees(i)
			switch rapid.IntRange(0, 2).Draw(t, "since") {
			case 1:
				g.spend(i, rapid.Int64Range(0, tokens[i]).Draw(t, "spent"))
			case 2:
				g.giveBack(i, rapid.Int64Range(0, 2*limiter.Milli).Draw(t, "back"))
			}
		}
		for range 8 {
			left, n := g.left(), rapid.Int64Range(1, 4*limiter.Milli).Draw(t, "take")
			admitted := g.take(n)
			if admitted != (n <= left) {
				t.Fatalf("a take of %d of %d millitokens in %d shards: admitted %t", n, left, level, admitted)
			}
			want := left
			if admitted {
				want -= n
			}
			if got := g.left(); got != want {
				t.Fatalf("a take of %d of %d millitokens leaves %d, want %d", n, left, got, want)
			}
		}
	})
}
