package aggregator

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// After a crash of a process another one goes on within a minute, as the page says, and never before it.
func TestTakeoverWithinAMinute(t *testing.T) {
	for second := range 30 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.add("s", "", r.fleet, "k", 10)
			var mu sync.Mutex
			dying := &silentLeases{Leases: r.leases, silent: &mu}
			_, stopOld := r.start("old", func(cfg *Config) { cfg.Leases = dying })
			time.Sleep(7 * time.Second)
			_, stopNext := r.start("next", nil)
			for i := range 60 + second {
				time.Sleep(time.Second)
				if owner := r.leases.get("s").Owner; owner != "old" {
					t.Fatalf("second %d: after %d s of both the owner is %q", second, i+1, owner)
				}
			}
			dying.set(true)
			died := time.Now()
			for r.leases.get("s").Owner != "next" && time.Since(died) < time.Hour {
				time.Sleep(time.Second)
			}
			if took := time.Since(died); took > time.Minute || took < DefaultTerm-DefaultTerm*2/5-time.Second {
				t.Errorf("second %d: another process took over after %v, want at most 1m", second, took)
			}
			stopOld()
			stopNext()
		})
	}
}

// lateLeases take a second for each write. One whose caller leaves is written after the next one.
type lateLeases struct{ Leases }

func (l *lateLeases) Write(ctx context.Context, before, after Lease) error {
	select {
	case <-time.After(time.Second):
		return l.Leases.Write(ctx, before, after)
	case <-ctx.Done():
		go func() {
			time.Sleep(5 * time.Second)
			_ = l.Leases.Write(context.WithoutCancel(ctx), before, after) // its caller is gone
		}()
		return ctx.Err()
	}
}

// A process that ends beside a write of its lease gives the lease back: another one goes on at once.
func TestAStopBesideARenewal(t *testing.T) {
	for tenth := range 100 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.add("s", "", r.fleet, "k", 0) // no flush waits for the same write
			_, stop := r.start("old", func(cfg *Config) { cfg.Leases = &lateLeases{r.leases} })
			time.Sleep(time.Minute + time.Duration(tenth)*100*time.Millisecond)
			stop()
			time.Sleep(10 * time.Second)
			if got := r.leases.get("s"); got.Owner != "" {
				t.Errorf("a stop after %d.%d s left the lease %+v", 60+tenth/10, tenth%10, got)
			}
		})
	}
}
