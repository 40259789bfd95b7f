package engine_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// oneByOne is a server that answers one call after the other, each in some time.
func oneByOne(each time.Duration) dynamofake.Plan {
	var mu sync.Mutex
	var free time.Time // when it has done what it was sent
	return func(dynamofake.Call) dynamofake.Fault {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(each)
		return dynamofake.Fault{Latency: time.Until(free)}
	}
}

// Calls on buckets of their own, three times as many as the server can do, are all decided in time. The server is not
// taken for unavailable, no write is sent again in vain, and each take of an admitted call is written in the end.
func TestMoreBucketsThanTheServerCanDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, deadline, lasts, perMilli = time.Millisecond, 25 * time.Millisecond, 2 * time.Second, 3
		db := newTable(t)
		db.SetPlan(oneByOne(each))
		e := newEngine(t, db, func(cfg *engine.Config) {
			cfg.Attempt, cfg.Budget, cfg.Crowded = 100*time.Millisecond, time.Second, true
		})
		defer closing(t, e)
		limit := limiter.PerMinute("l", 100)
		var calls sync.WaitGroup
		n := 0
		for began := time.Now(); time.Since(began) < lasts; time.Sleep(time.Millisecond) {
			for range perMilli {
				n++
				o := op(t, strconv.Itoa(n), limit, limiter.Spend{Take: tokens(1)})
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					asked := time.Now()
					if admitted, err := e.Take(ctx, asked, []limiter.Op{o}); !admitted || err != nil || time.Since(asked) > deadline {
						t.Errorf("admitted: %t, %v, after %v", admitted, err, time.Since(asked))
					}
				})
			}
		}
		calls.Wait()
		if s := e.Stats(); s.Outages > 0 || s.Resent > 0 || s.Waiting < int64(n)/2 {
			t.Errorf("%d outages, %d writes were sent again, %d lanes wait: want 0, 0, and most of %d", s.Outages, s.Resent, s.Waiting, n)
		}
		time.Sleep(time.Duration(n) * each)
		if s := e.Stats(); s.Owed > 0 || s.Lost > 0 || s.Waiting > 0 || s.Writes < int64(n) {
			t.Errorf("then: %d requests are owed, %d lost, %d lanes wait, %d writes: want none, and a write for each of %d calls", s.Owed, s.Lost, s.Waiting, s.Writes, n)
		}
	})
}
