//go:build !race

package reservation_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/reservation"
)

func TestAllocsOfAnEstimate(t *testing.T) {
	e := reservation.NewEstimates(10)
	observe(e, key, 1000, 100)
	if got := testing.AllocsPerRun(1000, func() { e.Estimate(key) }); got != 0 {
		t.Errorf("%v allocations an estimate, want 0", got)
	}
	if got := testing.AllocsPerRun(1000, func() { e.Observe(key, 1000) }); got != 0 {
		t.Errorf("%v allocations an observation, want 0", got)
	}
}

// Names are parts of messages, which the estimates must not retain.
func TestAllocatedMemoryOfAKey(t *testing.T) {
	const keys, most = 10_000, 1024
	random := rand.New(rand.NewPCG(1, 2))
	e := reservation.NewEstimates(keys)
	before := liveBytes()
	for i := range keys {
		message := fmt.Sprintf("%s default key/%028d gpt-4-turbo-2024-04-09 tpm", strings.Repeat("x", 4096), i)
		f := strings.Fields(message)
		k := reservation.Key{Namespace: f[1], Entity: f[2], Resource: f[3], Limit: f[4]}
		for range 400 { // 50 to 6,400 tokens, the smaller the likelier
			e.Observe(k, 50_000<<random.IntN(7)+random.Int64N(50_000))
		}
	}
	got := (liveBytes() - before) / keys
	t.Logf("%d bytes a key", got)
	if got > most {
		t.Errorf("a key takes %d bytes, want at most %d", got, most)
	}
	runtime.KeepAlive(e)
}

func liveBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
