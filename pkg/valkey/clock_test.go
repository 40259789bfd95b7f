package valkey_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A machine whose clock is wrong goes by that of the server: it refills nothing before its time, and its
// buckets last as long as others.
func TestClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"slow": -5 * time.Minute, "fast": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Start(t)
			cfg := configOf(t, server, nil)
			right := open(t, cfg, 0)
			wrong := open(t, cfg, off)
			bucket := limiter.BucketKey{Namespace: "ns", Entity: "e", Resource: "r"}
			limits, err := limiter.NewLimits(limiter.PerMinute("l", 10))
			if err != nil {
				t.Fatal(err)
			}
			all := limiter.Op{Bucket: bucket, Limits: limits, Spends: []limiter.Spend{{Limit: "l", Take: 10 * limiter.Milli}}}
			if admitted, err := right.Take(t.Context(), time.Now(), []limiter.Op{all}); !admitted || err != nil {
				t.Fatalf("take all: %t, %v", admitted, err)
			}
			for range 20 {
				if admitted, err := wrong.Take(t.Context(), time.Now().Add(off), []limiter.Op{all}); admitted || err != nil {
					t.Errorf("take all again: %t, %v", admitted, err)
				}
			}
			if now := wrong.clock.Correct(time.Now().Add(off)); time.Since(now).Abs() > time.Second {
				t.Errorf("the clock is corrected to one that is off by %v", time.Since(now))
			}
		})
	}
}

// A machine's time is set, and buckets that are empty are only read. Replies to reads show then that
// the clock is right, and refills go on.
func TestClockThatIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			var set atomic.Int64
			began := time.Now()
			machine := func() time.Time {
				return clocktest.At(time.Now().UnixNano()+set.Load(), 1+int64(time.Since(began)))
			}
			cfg := configOf(t, valkeytest.Start(t), func(cfg *valkey.Config) { cfg.Now, cfg.Clock = machine, valkey.NewClock(machine) })
			s, err := valkey.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close(t.Context()) })
			limits, err := limiter.NewLimits(limiter.PerMinute("l", 10))
			if err != nil {
				t.Fatal(err)
			}
			all := limiter.Op{Bucket: limiter.BucketKey{Namespace: "ns", Entity: "e", Resource: "r"}, Limits: limits, Spends: []limiter.Spend{{Limit: "l", Take: 10 * limiter.Milli}}}
			if admitted, err := s.Take(t.Context(), machine(), []limiter.Op{all}); !admitted || err != nil {
				t.Fatalf("take all: %t, %v", admitted, err)
			}
			set.Store(int64(by))
			if cfg.Clock.State().Trusted {
				t.Fatal("the clock is trusted before a reply")
			}
			for range 3 {
				if admitted, err := s.Take(t.Context(), machine(), []limiter.Op{all}); admitted || err != nil {
					t.Errorf("take all again: %t, %v", admitted, err)
				}
			}
			if state := cfg.Clock.State(); !state.Trusted {
				t.Errorf("the clock after replies: %+v", state)
			}
		})
	}
}

// clocked is a store with a clock.
type clocked struct {
	*valkey.Store

	clock *valkey.Clock
}

// open opens a store on a machine whose clock is off.
func open(t *testing.T, cfg valkey.Config, off time.Duration) *clocked {
	t.Helper()
	cfg.Now = func() time.Time { return time.Now().Add(off) }
	cfg.Clock = valkey.NewClock(cfg.Now)
	s, err := valkey.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return &clocked{s, cfg.Clock}
}

// A clock that is too wrong to be corrected is refused.
func TestClockTooWrong(t *testing.T) {
	server := valkeytest.Start(t)
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		cfg := configOf(t, server, func(cfg *valkey.Config) {
			cfg.Now = func() time.Time { return time.Now().Add(off) }
		})
		if _, err := valkey.Open(t.Context(), cfg); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("Open with a clock that is off by %v: %v", off, err)
		}
	}
}
