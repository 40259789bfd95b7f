//go:build bench && !race

package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/benchtable"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

const (
	leaseReplicas = 3
	leaseCallers  = 256 // of all replicas
	leaseTime     = 5 * time.Second
)

// benchLeases has three stores on one table, each with a client of its own, decide on one
// hot bucket from leases: on one that has enough for all, and on one that has not.
func benchLeases(t *testing.T, server *dynamotest.Server, table string) []benchtable.Row {
	const mostWrites, mostMedian = 0.002, 100 * time.Microsecond
	stores := make([]*dynamo.Store, leaseReplicas)
	for i := range stores {
		stores[i] = newStore(t, server.Client(t), func(cfg *dynamo.Config) { cfg.Table, cfg.ShardUnits, cfg.Leases = table, 1<<40, true })
	}
	defer closing(t, stores...)
	plenty := loadLeases(t, stores, op(t, "leased", limiter.PerSecond("rps", 5_000_000), limiter.Spend{Take: tokens(1)}))
	scarce := loadLeases(t, stores, op(t, "scarce", limiter.PerSecond("rps", 20_000), limiter.Spend{Take: tokens(1)}))
	writes := float64(plenty.writes) / float64(plenty.decisions)
	over := max(plenty.worst.Excess(), scarce.worst.Excess(), 0)
	near := scarce.worst.Taken * 100 / max(scarce.worst.Admitted, 1)
	return []benchtable.Row{
		{
			Name:     "DynamoDB, token leases, writes a decision",
			Measured: fmt.Sprintf("%.5f, %d replicas, %d callers, %d decisions", writes, leaseReplicas, leaseCallers, plenty.decisions),
			Target:   fmt.Sprintf("at most %.3f", mostWrites), OK: writes <= mostWrites,
		},
		{
			Name:     "DynamoDB, token leases, p50",
			Measured: fmt.Sprintf("%.1f µs, p99 %.1f µs", micros(plenty.p50), micros(plenty.p99)),
			Target:   fmt.Sprintf("below %.0f µs", micros(mostMedian)), OK: plenty.p50 < mostMedian,
		},
		{
			Name: "DynamoDB, token leases, tokens over",
			Measured: fmt.Sprintf("%d millitokens in the worst of all windows, with enough for all and with too little (%d admitted, the fullest window to %d %%; %.4f writes a decision)",
				over, scarce.admitted, near, float64(scarce.writes)/float64(scarce.decisions)),
			Target: "0", OK: over == 0 && near >= 90,
		},
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// leaseLoad is the result of a load.
type leaseLoad struct {
	decisions, admitted int
	writes              int64
	p50, p99            time.Duration
	worst               windows.Window
}

// leaseCall is one decision of a load.
type leaseCall struct {
	from, took time.Duration // since the load began
	admitted   bool
}

// loadLeases has callers take from a bucket without pause. The answers are compared
// with the bound in every window: all go by one clock, of whole milliseconds.
func loadLeases(t *testing.T, stores []*dynamo.Store, o limiter.Op) leaseLoad {
	t.Helper()
	before := writesOf(stores)
	calls := make([][]leaseCall, leaseCallers)
	began := time.Now()
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			own := o
			own.Spends = slices.Clone(o.Spends)
			for ops := []limiter.Op{own}; time.Since(began) < leaseTime; {
				from := time.Since(began)
				ok, err := stores[i%len(stores)].Take(context.Background(), time.Now(), ops)
				if err != nil {
					t.Error(err)
				}
				calls[i] = append(calls[i], leaseCall{from, time.Since(began) - from, ok})
			}
		})
	}
	group.Wait()
	all := slices.Concat(calls...)
	load := leaseLoad{decisions: len(all), writes: writesOf(stores) - before}
	took := make([]time.Duration, len(all))
	var taken []windows.Taking
	for i, c := range all {
		took[i] = c.took
		if c.admitted {
			taken = append(taken, windows.Taking{From: c.from.Microseconds(), To: (c.from + c.took).Microseconds() + 1, Amount: o.Spends[0].Take})
		}
	}
	slices.Sort(took)
	load.admitted, load.p50, load.p99 = len(taken), took[len(took)/2], took[len(took)*99/100]
	found, err := windows.Check(o.Limits.At(0).Params(), taken, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	load.worst = found.Tightest
	return load
}

func writesOf(stores []*dynamo.Store) int64 {
	var n int64
	for _, s := range stores {
		n += s.Stats().Writes
	}
	return n
}
