//go:build torture

package valkey_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// spreadBuckets is how many buckets a spread load has, and spreadLimit the limit of each a second.
const spreadBuckets, spreadLimit = 24, 100

// spread is what three replicas ask of many buckets in all places.
type spread struct {
	stores   []*valkey.Store
	limits   *limiter.Limits
	began    time.Time
	admitted [spreadBuckets]atomic.Int64
	last     [spreadBuckets]atomic.Int64 // Unix ns of the last decision
	gap      [spreadBuckets]atomic.Int64 // longest time without one, ns
	failed   [spreadBuckets]atomic.Int64
	work     sync.WaitGroup
	stop     context.CancelFunc
}

// startSpread opens the stores, and begins.
func startSpread(t *testing.T, c *valkeytest.Cluster, change func(*valkey.Config)) *spread {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("l", spreadLimit))
	if err != nil {
		t.Fatal(err)
	}
	l := &spread{limits: limits, began: time.Now()}
	for range loadReplicas {
		s, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], byCluster(c, func(cfg *valkey.Config) {
			cfg.Attempt, cfg.Budget = 0, 0
			change(cfg)
		})))
		if err != nil {
			t.Fatal(err)
		}
		l.stores = append(l.stores, s)
	}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for i := range l.stores {
		for n := range spreadBuckets {
			l.last[n].Store(l.began.UnixNano())
			l.work.Go(func() {
				for ctx.Err() == nil {
					l.take(l.stores[i], n) //nolint:contextcheck // a call ends after the load
				}
			})
		}
	}
	return l
}

// take makes one call, and counts its outcome.
func (l *spread) take(s *valkey.Store, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), loadDeadline)
	defer cancel()
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: "e" + strconv.Itoa(n), Resource: "r"}, Limits: l.limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}
	admitted, err := s.Take(ctx, time.Now(), []limiter.Op{op})
	switch {
	case err != nil:
		l.failed[n].Add(1)
		time.Sleep(5 * time.Millisecond)
		return
	case admitted:
		l.admitted[n].Add(1)
	}
	now := time.Now().UnixNano()
	raise(&l.gap[n], now-l.last[n].Swap(now))
	time.Sleep(20 * time.Millisecond)
}

// end ends the load, and returns how many tokens were admitted above the bound, of the bucket with most.
func (l *spread) end(t *testing.T) (over int64) {
	t.Helper()
	l.stop()
	l.work.Wait()
	most := spreadLimit + int64(time.Since(l.began).Seconds()*spreadLimit)
	for _, s := range l.stores {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := s.Close(ctx); err != nil && !errors.Is(err, limiter.ErrUnavailable) {
			t.Error(err)
		}
		cancel()
	}
	over = math.MinInt64
	for n := range l.admitted {
		over = max(over, l.admitted[n].Load()-most)
	}
	return over
}

// owners returns the primary that has each bucket.
func (l *spread) owners(t *testing.T, c *valkeytest.Cluster) (of [spreadBuckets]*valkeytest.Server) {
	t.Helper()
	for _, s := range c.Servers[:3] {
		names := s.Must("EVAL", "local t = {} for _, k in ipairs(redis.call('KEYS', '*:i:*/BUCKET#e*')) do t[#t + 1] = k:match('BUCKET#e(%d+)#') end return table.concat(t, ' ')", "0")
		for name := range strings.FieldsSeq(names) {
			n, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			of[n] = s
		}
	}
	return of
}

// report logs the calls that failed and the longest gap, of the buckets that a server had and of the others.
func (l *spread) report(t *testing.T, of [spreadBuckets]*valkeytest.Server, server *valkeytest.Server) (failed, others int64) {
	t.Helper()
	var gap, gapOthers time.Duration
	for n := range of {
		longest := time.Duration(l.gap[n].Load())
		if of[n] == server {
			failed, gap = failed+l.failed[n].Load(), max(gap, longest)
		} else {
			others, gapOthers = others+l.failed[n].Load(), max(gapOthers, longest)
		}
	}
	t.Logf("%d calls failed, the longest gap is %v; of the buckets of other servers %d and %v", failed, gap.Round(time.Millisecond), others, gapOthers.Round(time.Millisecond))
	return failed, others
}

// awaitTakes waits until each bucket is taken from by each store.
func (l *spread) awaitTakes(t *testing.T) {
	t.Helper()
	for n := range spreadBuckets {
		for end, before := time.Now().Add(2*recovery), l.admitted[n].Load(); l.admitted[n].Load() == before; <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the bucket %d is not taken from within %v", n, 2*recovery)
			}
		}
	}
}

// The buckets of a cluster are on all of its primaries. What one of them suffers is over for the buckets of the others at
// once, and no bucket gives more than its limit and a write of each replica.
func TestSpread(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, c *valkeytest.Cluster, of *valkeytest.Server){
		"a primary is killed": func(_ *testing.T, _ *valkeytest.Cluster, of *valkeytest.Server) { of.Kill() },
		"a primary hangs": func(_ *testing.T, c *valkeytest.Cluster, of *valkeytest.Server) {
			c.Replica(of).Kill() // none takes its place
			of.Signal(syscall.SIGSTOP)
			<-time.After(3 * time.Second)
			of.Signal(syscall.SIGCONT)
		},
		"a replica is promoted": func(_ *testing.T, c *valkeytest.Cluster, of *valkeytest.Server) {
			c.Promote(of)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
				options := []string{"--cluster-require-full-coverage", "no"}
				if name != "a primary is killed" {
					options = append(options, calmCluster...)
				}
				c := withCluster(t, options...)
				l := startSpread(t, c, leases)
				<-time.After(settle)
				of := l.owners(t, c)
				for _, s := range c.Servers[:3] {
					if !slices.Contains(of[:], s) {
						t.Errorf("the server at %s has no bucket", s.Address)
					}
				}
				began := time.Now()
				fault(t, c, of[0])
				t.Logf("the fault took %v", time.Since(began).Round(time.Millisecond))
				l.awaitTakes(t)
				<-time.After(settle)
				l.awaitTakes(t)
				if over := l.end(t); over > loadReplicas {
					t.Errorf("%d tokens too many of a bucket, want at most a write of each replica: %d", over, loadReplicas)
				}
				failed, others := l.report(t, of, of[0])
				if name == "a primary hangs" && others > failed { // else all leases end once, on all servers
					t.Errorf("%d calls failed for the buckets of other servers, and %d for those of the server", others, failed)
				}
			})
		})
	}
}
