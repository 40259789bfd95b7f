package valkey_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A server without memory throttles, and leaves nothing half written.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
		server := valkeytest.Start(t)
		var name string
		change := func(cfg *valkey.Config) {
			leases(cfg)
			name = cfg.Name
		}
		_, over := under(t, server.Address, change, func(l *load) {
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			server.Must("CONFIG", "SET", "maxmemory", strconv.FormatInt(int64(server.Info("memory", "used_memory:"))+30<<10, 10))
			t.Logf("a server that becomes full leads to: %v", l.fill(ctx))
			server.Must("CONFIG", "SET", "maxmemory", "1")
			time.Sleep(2 * settle)
			call, end := context.WithTimeout(t.Context(), loadDeadline)
			defer end()
			if err := l.once(call, "late"); !errors.Is(err, limiter.ErrUnavailable) {
				t.Errorf("a new bucket of a full server leads to: %v", err)
			}
			for end := time.Now().Add(recovery); l.stores[0].State().Condition.String() == "unavailable"; time.Sleep(5 * time.Millisecond) { // a try that is late on a busy machine has no answer
				if time.Now().After(end) {
					t.Fatalf("the state is %+v, want throttled", l.stores[0].State())
				}
			}
			server.Must("CONFIG", "SET", "maxmemory", "0")
		})
		if over > 0 {
			t.Errorf("%d tokens too many", over)
		}
		checkConsistent(t, server, name)
	})
}

// fill takes from one new bucket after the other until that fails, or ctx ends.
func (l *load) fill(ctx context.Context) error {
	ended := make(chan error, loadCallers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var next atomic.Int64
	for range loadCallers {
		go func() {
			for ctx.Err() == nil {
				call, end := context.WithTimeout(ctx, loadDeadline)
				err := l.once(call, "cold"+strconv.FormatInt(next.Add(1), 10))
				end()
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- errors.New("nothing failed")
		}()
	}
	first := <-ended
	stop()
	for range loadCallers - 1 {
		if err := <-ended; err == nil {
			return nil
		}
	}
	return first
}

// once takes a token of an entity by the first store.
func (l *load) once(ctx context.Context, entity string) error {
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: entity, Resource: "r"}, Limits: l.limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}
	_, err := l.stores[0].Take(ctx, time.Now(), []limiter.Op{op})
	return err
}

// A server that drops buckets for want of memory is refused.
func TestEviction(t *testing.T) {
	server := valkeytest.Start(t, "--maxmemory-policy", "allkeys-lru")
	_, err := valkey.Open(t.Context(), configOf(t, server, nil))
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "maxmemory-policy") {
		t.Errorf("Open: %v, want one that names maxmemory-policy", err)
	}
}

// A million buckets of two limits take at most 1.5 GB without usage, with their indexes, and an item at most 1,000 bytes.
func TestMemoryOfBuckets(t *testing.T) {
	const n, perBucket, perItem = 5000, 1500, 1000
	server := valkeytest.Start(t)
	cfg := configOf(t, server, nil)
	cfg.Name, cfg.NoUsage = "ratelimit", true
	s, err := valkey.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 100), limiter.PerMinute("tpm", 10_000))
	if err != nil {
		t.Fatal(err)
	}
	take := func(entity int) {
		_, err := s.Take(t.Context(), time.Now(), []limiter.Op{{
			Bucket: limiter.BucketKey{Namespace: "ns", Entity: "key/" + strconv.Itoa(entity), Resource: "gpt"}, Limits: limits,
			Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}, {Limit: "tpm", Take: 10 * limiter.Milli}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	take(0)
	before := server.Info("memory", "used_memory:")
	for i := range n {
		take(i)
		take(i)
	}
	if got := (server.Info("memory", "used_memory:") - before) / n; got > perBucket {
		t.Errorf("%.0f bytes a bucket, want at most %d", got, perBucket)
	}
	if got := server.Must("EVAL", "return redis.call('MEMORY', 'USAGE', redis.call('KEYS', '*:i:*key%2F7#gpt*')[1])", "0"); !atMost(got, perItem) {
		t.Errorf("%s bytes an item, want at most %d", got, perItem)
	}
}

// atMost reports whether a reply is a number of at most n.
func atMost(reply string, n int) bool {
	is, err := strconv.Atoi(reply)
	return err == nil && is <= n
}
