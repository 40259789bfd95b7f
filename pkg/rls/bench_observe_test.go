//go:build bench && !race

package rls_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/benchtable"
	"github.com/ratelimit/ratelimit/internal/topk"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// observedRate measures the throughput of a service whose busiest entities are counted, and
// read ten times a second, beside one without, in alternating rounds.
func observedRate(t *testing.T) benchtable.Row {
	t.Helper()
	const least = 0.97
	counter := topk.New()
	observed := newServiceLoad(t, func(now time.Time, o rls.Observation) {
		counter.Add(now, topk.Key{Namespace: o.Namespace, Entity: o.Entity, Resource: o.Resource, Limit: o.Limit}, o.Amount)
	})
	plain := newServiceLoad(t, nil)
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { read(done, counter) })
	defer reader.Wait()
	defer close(done)
	observed.round(t)
	plain.round(t)
	var rate, plainRate, ratio measures
	for i := range ratio {
		if i%2 == 0 {
			rate[i], _ = observed.round(t)
			plainRate[i], _ = plain.round(t)
		} else {
			plainRate[i], _ = plain.round(t)
			rate[i], _ = observed.round(t)
		}
		ratio[i] = rate[i] / plainRate[i]
	}
	return benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC with the top of entities and a reader, throughput, %d callers", loadWorkers),
		Measured: fmt.Sprintf("%.3f× without them (%.0f/s, without %.0f/s)", median(ratio), median(rate), median(plainRate)),
		Target:   fmt.Sprintf("at least %.2f×", least),
		OK:       median(ratio) >= least,
	}
}

// read reads the top ten times a second.
func read(done <-chan struct{}, counter *topk.Counter) {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			counter.Top(now, 20, nil)
		case <-done:
			return
		}
	}
}
