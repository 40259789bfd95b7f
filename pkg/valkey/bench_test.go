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
// decision, and the processor time of the server and of this program.
func BenchmarkCold(b *testing.B) {
	idle := make([]byte, idleBytes)
	defer runtime.KeepAlive(idle)
	server := valkeytest.Start(b)
	s, err := valkey.Open(b.Context(), valkey.Config{Connection: valkey.Connection{Addresses: []string{server.Address}}, Create: true, Leases: true, Attempt: 20 * time.Second, Budget: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 100), limiter.PerMinute("tpm", 10_000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		askCold(b, s, server, limits, coldKeys, "new")
		askCold(b, s, server, limits, 3*coldKeys, "used")
	}
	b.ReportMetric(server.Info("memory", "used_memory:")/coldKeys, "bytes/bucket")
}

// askCold makes n decisions, each on the key that was used longest ago.
func askCold(b *testing.B, s *valkey.Store, server *valkeytest.Server, limits *limiter.Limits, n int64, phase string) {
	b.Helper()
	messages, spent, client := server.Scripts(), server.ProcessorTime(), processTime(b)
	var next atomic.Int64
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				_, err := s.Take(b.Context(), time.Now(), []limiter.Op{{
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
