package valkey_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// renewals is the most messages that leases need in the time of a test, however few decisions a machine makes.
const renewals = 60

// A hot bucket costs a message for many decisions.
func TestMessagesOfHotBucket(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		leases bool
		most   float64 // messages a decision
	}{"with leases": {true, 0.01}, "without leases": {false, 0.3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := valkeytest.Start(t)
			before := 0
			l, _ := under(t, server.Address, func(cfg *valkey.Config) { cfg.Leases = of.leases }, func(*load) {
				before = server.Scripts()
				time.Sleep(settle)
			})
			decisions, sent := float64(l.admitted.Load()+l.denied.Load()), server.Scripts()
			t.Logf("%.5f messages a decision, with those of the start; %d before", float64(sent)/decisions, before)
			if most := before + renewals + int(of.most*decisions); sent > most {
				t.Errorf("%d messages for %.0f decisions, want at most %d", sent, decisions, most)
			}
		})
	}
}

// A cold bucket costs a message for each decision, and so does each of its parents.
func TestMessagesOfColdBuckets(t *testing.T) {
	const buckets, rounds = 500, 3
	for name, of := range map[string]struct {
		parents int
		most    float64
	}{"alone": {0, 1.05}, "with a parent": {1, 2.1}} {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Start(t)
			s := onServer(t, server, func(cfg *valkey.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
			defer func() { _ = s.Close(t.Context()) }()
			if admitted, err := takeFrom(s, "first"); !admitted || err != nil {
				t.Fatalf("take: %t, %v", admitted, err)
			}
			for round := range rounds {
				before := server.Scripts()
				takeFromCold(t, s, buckets, of.parents)
				each := float64(server.Scripts()-before) / buckets
				t.Logf("round %d: %.3f messages a decision", round, each)
				if each > of.most {
					t.Errorf("round %d: %.3f messages a decision, want at most %.3f", round, each, of.most)
				}
			}
		})
	}
}

// takeFromCold takes once from each of n buckets, and from as many parents of each as there are.
func takeFromCold(t *testing.T, s *valkey.Store, n, parents int) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerHour("l", 1000), limiter.PerMinute("m", 100))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		ops := make([]limiter.Op, parents+1)
		for level := range ops {
			ops[level] = limiter.Op{
				Bucket: limiter.BucketKey{Namespace: "ns", Entity: strconv.Itoa(level) + "-" + strconv.Itoa(i), Resource: "r"}, Limits: limits,
				Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}, {Limit: "m", Take: limiter.Milli}},
			}
		}
		if admitted, err := s.Take(t.Context(), time.Now(), ops); !admitted || err != nil {
			t.Fatalf("take: %t, %v", admitted, err)
		}
	}
}
