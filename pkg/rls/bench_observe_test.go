//go:build bench && !race && unix

package rls_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/rls"
	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// decisionsASecond are made between two reads of the top.
const decisionsASecond = 20_000

// observedCost measures the processor time that the top of entities adds to a call, with a read a
// second, beside that of a whole call over gRPC. The former is the difference of services with and
// without the top, in alternating rounds without gRPC. Processor time is that of this process, so
// that other processes change little.
func observedCost(t *testing.T, overGRPC *load) benchtable.Row {
	t.Helper()
	const most = 3.0 // percent
	counter := controlapi.NewTopCounter()
	with := newBenchService(t, func(now time.Time, o rls.Observation) {
		counter.Add(now, controlapi.TopKey{Namespace: o.Namespace, Entity: o.Entity, Resource: o.Resource, Limit: o.Limit}, o.Amount)
	})
	without := newBenchService(t, nil)
	wires := make([][]byte, len(overGRPC.requests))
	for i, r := range overGRPC.requests {
		wire, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		wires[i] = wire
	}
	counted := func() float64 {
		return perCall(t, with, wires, func() { counter.Top(time.Now(), 20, controlapi.TopFilter{}) })
	}
	plain := func() float64 { return perCall(t, without, wires, func() {}) }
	counted()
	plain()
	var added, call measures
	for i := range added {
		if i%2 == 0 {
			added[i] = counted() - plain()
		} else {
			added[i] = -plain() + counted()
		}
		call[i] = overGRPC.cost(t)
	}
	percent := 100 * benchtable.Median(added[:]) / benchtable.Median(call[:])
	return benchtable.Row{
		Name:     "Top of entities, read once in 20,000 decisions, processor time",
		Measured: fmt.Sprintf("%.2f %% of a call over gRPC (%.2f µs of %.1f µs)", percent, benchtable.Median(added[:])*1e6, benchtable.Median(call[:])*1e6),
		Target:   fmt.Sprintf("at most %.0f %%", most),
		OK:       percent <= most,
	}
}

// perCall returns the processor time of a call in seconds. It makes the calls of one second and
// then reads the top.
func perCall(t *testing.T, s *rls.Service, wires [][]byte, read func()) float64 {
	t.Helper()
	before := processorTime(t)
	for i := range decisionsASecond {
		if err := rls.AnswerWire(s, t.Context(), wires[i*7919%len(wires)]); err != nil {
			t.Fatal(err)
		}
	}
	read()
	return (processorTime(t) - before).Seconds() / decisionsASecond
}

// cost returns the processor time of a call in a round, in seconds, including that of the client.
func (l *load) cost(t *testing.T) float64 {
	t.Helper()
	before := processorTime(t)
	calls := l.round(t)
	return (processorTime(t) - before).Seconds() / float64(calls)
}

// processorTime returns the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
