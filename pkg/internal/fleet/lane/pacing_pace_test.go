package lane

import (
	"testing"
	"time"
)

// paceT0 is when the tests begin.
var paceT0 = time.UnixMilli(1_800_000_000_000)

// Ten replicas that write as fast as they may stay below DynamoDB's bound for one item.
func TestPaceOfTenReplicas(t *testing.T) {
	p := Pace{sent: time.Unix(1, 0)}
	for name, flights := range map[string]int{"one under way": 1, "none": 0} {
		if each := p.Next(flights, 10).Sub(p.sent); 10*time.Second/each >= 1000 {
			t.Errorf("%s: a write each %v, want fewer than 1,000 a second of ten replicas", name, each)
		}
	}
}

// A slow table is given longer for a reply, and fewer messages.
func TestPaceOfASlowTable(t *testing.T) {
	const least = 100 * time.Millisecond
	p := Pace{sent: time.Unix(1, 0)}
	want := func(attempt, pause time.Duration) {
		t.Helper()
		if got := p.Attempt(least); got != attempt {
			t.Errorf("an attempt of %v, want %v", got, attempt)
		}
		if got := p.Next(1, 1).Sub(p.sent); got != pause {
			t.Errorf("a write each %v, want %v", got, pause)
		}
	}
	want(least, Least)
	p.Reply(60 * time.Millisecond)
	want(4*60*time.Millisecond, 30*time.Millisecond)
	p.Reply(time.Hour)
	want(4*74*time.Millisecond, 37*time.Millisecond)
}

func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name              string
		flights, replicas int
		want              time.Duration // after the last write; 0 = at once
	}{
		{"alone, no write under way", 0, 1, 0},
		{"alone, a write under way", 1, 1, Least},
		{"of three, no write under way", 0, 3, 3 * Each},
		{"of three, a write under way", 2, 3, Least},
		{"of ten, a write under way", 1, 10, 10 * Each},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Pace{sent: paceT0}
			got, want := p.Next(tc.flights, tc.replicas), paceT0.Add(tc.want)
			if tc.want == 0 {
				want = time.Time{}
			}
			if !got.Equal(want) {
				t.Errorf("the next write is at %v, want %v", got, want)
			}
			p.rest = paceT0.Add(time.Second)
			if got := p.Next(tc.flights, tc.replicas); !got.Equal(p.rest) {
				t.Errorf("the next write is at %v, want after the rest, at %v", got, p.rest)
			}
		})
	}
}

func TestRoundTripsAreAveraged(t *testing.T) {
	var p Pace
	if got := p.RoundTrip(); got != firstTrip {
		t.Errorf("before the first reply: %v, want %v", got, firstTrip)
	}
	p.Reply(3 * time.Millisecond)
	for range 100 {
		p.Reply(9 * time.Millisecond)
	}
	if got := p.RoundTrip(); got < 8*time.Millisecond || got > 9*time.Millisecond {
		t.Errorf("got %v, want nearly 9 ms", got)
	}
	p.Reply(time.Hour)
	if got := p.RoundTrip(); got > 9*time.Millisecond+mostTrip/tripWeight {
		t.Errorf("a lost reply makes it %v", got)
	}
}
