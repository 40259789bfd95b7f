package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// A machine sleeps for an hour after a minute, and is set back by a day later.
func TestClocks(t *testing.T) {
	m := clocktest.Machine{Wall: 1_800_000_000e9, Mono: 5e9}
	c := limiter.NewClocks(m.Now)
	start := m.Now()
	for _, step := range []struct {
		name            string
		passes          time.Duration // on both clocks
		set             time.Duration // of the wall clock
		call, wall, run time.Duration // since the start: the callers' clock, and both readings of the store's
	}{
		{"at the start", 0, 0, 0, 0, 0},
		{"after a minute", time.Minute, 0, time.Minute, time.Minute, time.Minute},
		{"after a sleep", time.Second, time.Hour, 61 * time.Second, time.Hour + 61*time.Second, 61 * time.Second},
		{"set back", 0, -24 * time.Hour, 61 * time.Second, -23*time.Hour + 61*time.Second, 61 * time.Second},
	} {
		m.Pass(step.passes)
		m.Set(step.set)
		if got := c.Call().Round(0).Sub(start.Round(0)); got != step.call {
			t.Errorf("%s: the clock of calls is at %v, want %v", step.name, got, step.call)
		}
		if got := c.Call().Sub(start); got != step.call {
			t.Errorf("%s: by the monotonic clock, calls are at %v, want %v", step.name, got, step.call)
		}
		now := c.Store()
		if wall, run := now.Round(0).Sub(start.Round(0)), now.Sub(start); wall != step.wall || run != step.run {
			t.Errorf("%s: the store's clock is at %v on the wall and %v on the monotonic clock, want %v and %v", step.name, wall, run, step.wall, step.run)
		}
	}
}

func ExampleNew() {
	c := limiter.NewClocks(nil)
	fmt.Println(c.Call().Sub(c.Store()).Abs() < time.Second)
	// Output: true
}
