//go:build bench

package reference_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

const (
	benchCallers = 64
	benchSlice   = 2 * time.Second
	benchRounds  = 3 // the median of the slices counts
)

// benchRules limit a key, a hot key that is never over, and one that is.
const benchRules = `domain: bench
descriptors:
  - {key: cold, rate_limit: {unit: hour, requests_per_unit: 1000000}}
  - {key: under, rate_limit: {unit: second, requests_per_unit: 10000000}}
  - {key: over, rate_limit: {unit: second, requests_per_unit: 2000}}
`

// side is a service in front of a server of its own.
type side struct {
	name     string
	replicas []*service
	pids     []int
	server   *valkeytest.Server
}

// outcome is a slice of a load on a side.
type outcome struct{ rate, commands, server, program, admitted float64 }

// TestBesideTheReference compares the program with envoyproxy/ratelimit, each on a real server. Slices of
// both alternate.
func TestBesideTheReference(t *testing.T) {
	p := build(t)
	for _, replicas := range []int{1, 3} {
		there, here := startSide(t, p.service, replicas, nil), startSide(t, program(t), replicas, nil)
		there.name, here.name = "envoyproxy/ratelimit", "ratelimit"
		for _, load := range []string{"cold", "under", "over"} {
			all := map[*side][]outcome{}
			for range benchRounds {
				for _, s := range []*side{there, here} {
					all[s] = append(all[s], s.run(t, load))
				}
			}
			for _, s := range []*side{there, here} {
				o := median(all[s])
				t.Logf("%d replicas, %-5s %-20s %7.0f decisions/s, %8.5f commands a decision, server %6.1f µs, program %6.1f µs, admitted %6.0f/s",
					replicas, load, s.name, o.rate, o.commands, o.server, o.program, o.admitted)
			}
		}
	}
}

func startSide(t *testing.T, program string, replicas int, more map[string]string) *side {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(benchRules), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &side{server: valkeytest.Start(t)}
	for range replicas {
		address := proctest.FreeAddress(t)
		started := startWith(t, program, address, variables(t, root, s.server.Address, address, more))
		s.replicas, s.pids = append(s.replicas, started), append(s.pids, started.pid)
	}
	return s
}

// run asks as fast as it can for a slice of time.
func (s *side) run(t *testing.T, load string) outcome {
	t.Helper()
	var calls, admitted atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), benchSlice)
	defer stop()
	commands, server, program := s.commands(), s.server.ProcessorTime().Seconds(), s.programTime(t)
	began := time.Now()
	var work sync.WaitGroup
	for i := range benchCallers {
		replica := s.replicas[i%len(s.replicas)]
		work.Go(func() {
			for n := i; ctx.Err() == nil; n += benchCallers {
				value := "one"
				if load == "cold" {
					value = strconv.Itoa(n % 10_000)
				}
				out, err := replica.rls.ShouldRateLimit(context.WithoutCancel(ctx), &rlsv3.RateLimitRequest{Domain: "bench", Descriptors: []*commonv3.RateLimitDescriptor{
					{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: load, Value: value}}},
				}})
				if err != nil {
					t.Error(err)
					return
				}
				calls.Add(1)
				if out.OverallCode == rlsv3.RateLimitResponse_OK {
					admitted.Add(1)
				}
			}
		})
	}
	work.Wait()
	took, n := time.Since(began).Seconds(), float64(max(calls.Load(), 1))
	return outcome{
		rate: n / took, commands: (s.commands() - commands) / n, server: (s.server.ProcessorTime().Seconds() - server) * 1e6 / n,
		program: (s.programTime(t) - program) * 1e6 / n, admitted: float64(admitted.Load()) / took,
	}
}

// commands returns how many commands of clients the server has run, those inside of scripts left out.
func (s *side) commands() (sum float64) {
	for _, name := range []string{"incrby", "expire", "pexpire", "incr"} {
		sum += s.server.Info("commandstats", "cmdstat_"+name+":calls=")
	}
	return sum + float64(s.server.Scripts())
}

// programTime returns the processor time of all replicas, in seconds.
func (s *side) programTime(t *testing.T) (sum float64) {
	t.Helper()
	for _, pid := range s.pids {
		fields := strings.Fields(read(t, fmt.Sprintf("/proc/%d/stat", pid)))
		for _, f := range fields[13:15] {
			ticks, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += ticks / 100
		}
	}
	return sum
}

func median(all []outcome) outcome {
	slices.SortFunc(all, func(a, b outcome) int {
		if a.rate < b.rate {
			return -1
		}
		return 1
	})
	return all[len(all)/2]
}
