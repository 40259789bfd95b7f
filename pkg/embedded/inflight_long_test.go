//go:build long

package embedded

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The load of TestAMillionInFlight: requests each millisecond of simulated time, of which some never end.
const (
	flightsInAll   = 1_000_000
	flightEntities = 50
	flightTakes    = 2000 // ms
	flightNeverOf  = 101  // one of so many, of each entity
)

// Of a million requests in flight some never end. Their places come back, so that none is denied, and buckets of
// old windows are forgotten.
func TestAMillionInFlight(t *testing.T) {
	store := newStore(t, Config{SweepInterval: time.Hour})
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	system, err := limiter.NewLimits(limiter.Concurrent("slots", 100, time.Minute)) // 40 at a time, and at most 24 without an end
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetStatic(t.Context(), limiter.Static{System: system}); err != nil {
		t.Fatal(err)
	}
	var open [flightTakes][]limiter.Holding
	var d limiter.Decision
	denied := 0
	for i := range flightsInAll {
		now := time.UnixMilli(int64(i) + 1_800_000_000_000)
		at := i % flightTakes
		if len(open[at]) > 0 && (i-flightTakes)%flightNeverOf != 0 {
			m := limiter.Mark{Namespace: limiter.DefaultNamespace, ID: strconv.Itoa(i), Owner: "o", Expires: now.Add(time.Minute)}
			if won, err := l.Settle(t.Context(), now, m, open[at], nil); err != nil || !won {
				t.Fatalf("the end of request %d: %t, %v", i-flightTakes, won, err)
			}
		}
		req := &limiter.Request{Takes: []limiter.Take{{Entity: fmt.Sprint("e", i%flightEntities), Resource: "r", Consume: []limiter.Consumption{{Limit: "slots", Amount: limiter.Milli}}}}}
		if err := l.Decide(t.Context(), now, req, &d); err != nil {
			t.Fatal(err)
		}
		if !d.Admitted {
			denied++
		}
		open[at] = d.InFlight(open[at][:0], req)
		if i%10_000 == 0 {
			store.sweep(0, shardCount, now.UnixMilli())
		}
	}
	if denied > 0 {
		t.Errorf("%d of %d were denied, want none: places are lost", denied, flightsInAll)
	}
	page, err := store.ListBuckets(t.Context(), time.UnixMilli(flightsInAll+1_800_000_000_000), limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{Size: limiter.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	if most := flightEntities * 14; len(page.Items) > most || page.Next != "" { // windows of ten minutes, and those of now
		t.Errorf("%d buckets are there, want at most %d", len(page.Items), most)
	}
}
