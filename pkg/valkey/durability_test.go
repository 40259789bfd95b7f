package valkey_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// Changes of records and settlements wait for a replica, for a bounded time, and are counted where none has them.
// Takes do not wait.
func TestDurability(t *testing.T) {
	server, replica := valkeytest.Start(t), valkeytest.Start(t)
	replica.Follow(server)
	s := onServer(t, server, func(cfg *valkey.Config) { cfg.Replica = true })
	defer func() { _ = s.Close(t.Context()) }()
	limits, err := limiter.NewLimits(limiter.PerHour("l", 100))
	if err != nil {
		t.Fatal(err)
	}
	change := func(resource string) {
		t.Helper()
		if err := s.PutLimits(t.Context(), "ns", limiter.ResourceLimitsRef(resource), limiter.Record{Limits: limits}); err != nil {
			t.Fatal(err)
		}
	}
	waits := func() int { return int(server.Info("commandstats", "cmdstat_wait:calls=")) }
	change("a")
	if waits() == 0 || s.Stats().Unreplicated != 0 {
		t.Errorf("with a replica: %d waits, %d writes without one", waits(), s.Stats().Unreplicated)
	}
	before := waits()
	for range 3 {
		if admitted, err := takeFrom(s, "e"); !admitted || err != nil {
			t.Fatalf("take: %t, %v", admitted, err)
		}
	}
	if n := waits() - before; n != 0 {
		t.Errorf("takes have waited %d times", n)
	}
	replica.Kill()
	began := time.Now()
	change("b")
	if s.Stats().Unreplicated == 0 {
		t.Errorf("without a replica nothing is counted, after %v", time.Since(began))
	}
}
