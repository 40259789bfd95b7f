package clocktest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

func TestAt(t *testing.T) {
	const wall = int64(1_800_000_000e9)
	at := clocktest.At(wall, 5e9)
	frozen := clocktest.At(wall+7e9, 6e9) // one second went by, and seven on the wall
	if got := at.UnixNano(); got != wall {
		t.Errorf("it is %d ns, want %d", got, wall)
	}
	if got, want := frozen.Sub(at), time.Second; got != want {
		t.Errorf("%v passed on the monotonic clock, want %v", got, want)
	}
	if got, want := frozen.Round(0).Sub(at.Round(0)), 7*time.Second; got != want {
		t.Errorf("%v passed on the wall, want %v", got, want)
	}
	if limit := at.Add(2 * time.Second); !frozen.Before(limit) || frozen.Round(0).Before(limit.Round(0)) {
		t.Error("the clocks are not apart")
	}
}

func ExampleMachine() {
	m := clocktest.Machine{Wall: 1_800_000_000e9, Mono: 1}
	before := m.Now()
	m.Pass(time.Second)
	m.Set(time.Hour) // it sleeps
	fmt.Println(m.Now().Sub(before), m.Now().Round(0).Sub(before.Round(0)))
	// Output: 1s 1h0m1s
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		if !clocktest.Pause(t.Context(), time.Second) || time.Since(before) != time.Second {
			t.Errorf("the pause took %v, want 1s to its end", time.Since(before))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if clocktest.Pause(ctx, time.Hour) || time.Since(before) != time.Second {
			t.Error("the pause goes on after its context has ended")
		}
	})
}
