package valkey_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// coldKeys is how many buckets the benchmark of cold keys has.
const coldKeys = 10_000

// idleBytes counts as in use, as in the program, so that the garbage collector runs as often as there.
const idleBytes = 64 << 20

// BenchmarkCold measures decisions on keys that are used once in a while, under two limits: messages a
// decision, and the processor time of the server and of this program. The keys are new ones, then used by one replica, then
// by three in turn that have seen them, or not.
func BenchmarkCold(b *testing.B) {
	idle := make([]byte, idleBytes)
	defer runtime.KeepAlive(idle)
	server := valkeytest.Start(b)
	one := openForBench(b, server)
	three := []*valkey.Store{one[0], openForBench(b, server)[0], openForBench(b, server)[0]}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 100), limiter.PerMinute("tpm", 10_000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		askCold(b, one, server, limits, coldKeys, "new")
		askCold(b, one, server, limits, 3*coldKeys, "used")
		askCold(b, three, server, limits, 3*coldKeys, "unseen")
		askCold(b, three, server, limits, 3*coldKeys, "seen")
	}
	b.ReportMetric(server.Info("memory", "used_memory:")/coldKeys, "bytes/bucket")
}

// openForBench opens a store until the end of the benchmark.
func openForBench(b *testing.B, server *valkeytest.Server) []*valkey.Store {
	b.Helper()
	s, err := valkey.Open(b.Context(), valkey.Config{Connection: valkey.Connection{Addresses: []string{server.Address}}, Create: true, Leases: true, Attempt: 20 * time.Second, Budget: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return []*valkey.Store{s}
}

// askCold makes n decisions by replicas in turn, each on the key that was used longest ago.
func askCold(b *testing.B, replicas []*valkey.Store, server *valkeytest.Server, limits *limiter.Limits, n int64, phase string) {
	b.Helper()
	messages, spent, client := server.Scripts(), server.ProcessorTime(), processTime(b)
	var next atomic.Int64
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				_, err := replicas[i%int64(len(replicas))].Take(b.Context(), time.Now(), []limiter.Op{{
					Bucket: limiter.BucketKey{Namespace: "ns", Entity: fmt.Sprint("key/", i%coldKeys), Resource: "gpt"}, Limits: limits,
					Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}, {Limit: "tpm", Take: 10 * limiter.Milli}},
				}})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(server.Scripts()-messages)/float64(n), "messages/"+phase)
	b.ReportMetric(float64((server.ProcessorTime()-spent).Nanoseconds())/1000/float64(n), "server-µs/"+phase)
	b.ReportMetric(float64((processTime(b)-client).Nanoseconds())/1000/float64(n), "client-µs/"+phase)
}

// processTime returns the processor time of this process.
func processTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
