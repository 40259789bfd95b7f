package server

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// The store of a fleet sees a sleep of the machine, which moves the wall clock alone.
// The callers' clock does not follow it.
func TestTheStoreSeesTheWallClock(t *testing.T) {
	m := clocktest.Machine{Wall: 1_800_000_000e9, Mono: 5e9}
	s := &backend{cfg: programtest.Parsed(t, programtest.TwoPerMinute), Clocks: limiter.NewClocks(m.Now)}
	cfg, call := s.tableConfig(nil), s.EmbeddedConfig().Now
	before, called := cfg.Now(), call()
	m.Pass(time.Second)
	m.Set(200 * time.Second)
	after := cfg.Now()
	if got, want := after.Round(0).Sub(before.Round(0)), 201*time.Second; got != want {
		t.Errorf("by its wall clock the store sees %v, want %v", got, want)
	}
	if got, want := after.Sub(before), time.Second; got != want {
		t.Errorf("by its monotonic clock the store sees %v, want %v", got, want)
	}
	if got, want := call().Round(0).Sub(called.Round(0)), time.Second; got != want {
		t.Errorf("callers see %v, want %v", got, want)
	}
}
