package lease

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

func TestStates(t *testing.T) {
	states := []State{None, Granting, Held, Renewing, Returning, Unsettled, Clearing, Ended}
	const never = 99
	tests := []struct {
		event event
		want  [8]State // by state
	}{
		{grantSent, [8]State{Granting, never, never, never, never, never, never, Granting}},
		{renewalSent, [8]State{never, never, Renewing, never, never, never, never, never}},
		{returnSent, [8]State{Clearing, never, Returning, never, never, never, never, Clearing}},
		{applied, [8]State{Held, Held, Held, Held, Held, Held, never, never}},
		{removed, [8]State{None, None, None, None, None, None, None, None}},
		{refused, [8]State{never, None, never, Held, Held, Held, Ended, never}},
		{unanswered, [8]State{never, None, never, Held, Unsettled, never, Ended, never}},
		{expired, [8]State{never, Ended, Ended, Ended, Ended, Ended, Ended, Ended}},
	}
	for _, tt := range tests {
		for i, s := range states {
			got, ok := s.after(tt.event)
			if ok != (tt.want[i] != never) || ok && got != tt.want[i] {
				t.Errorf("%v after event %d: got %v, %v, want %v", s, tt.event, got, ok, tt.want[i])
			}
		}
	}
}

// An event that cannot happen ends the lease: nothing is served.
func TestImpossibleEvent(t *testing.T) {
	h := New(nil, limiter.LeasePolicy{}, 0)
	h.duties.state, h.serves = Held, true
	h.life.happen(grantSent)
	if h.State() != Ended || h.serves {
		t.Errorf("got %v, serves %v, want ended", h.State(), h.serves)
	}
}

func TestStatesThatServe(t *testing.T) {
	for s := None; s <= Ended; s++ {
		if got, want := s.Serves(), s == Held || s == Renewing; got != want {
			t.Errorf("%v serves: got %v, want %v", s, got, want)
		}
	}
}

func TestStateNames(t *testing.T) {
	want := []string{"none", "granting", "held", "renewing", "returning", "unsettled", "clearing", "ended", "unknown"}
	for i, name := range want {
		if got := State(i).String(); got != name { // #nosec G115 -- a small index
			t.Errorf("state %d: got %q, want %q", i, got, name)
		}
	}
}

// New rate and new room count from the reply on: until then a lease write adds room for the
// tokens that it draws, and no rate. Given room and rate are gone from the plan.
func TestCandidateOfAWrite(t *testing.T) {
	limits := []tokenbucket.Params{{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000}}
	base := candidate{rate: 100, room: 200, params: share(limits, 100, 200), buckets: []tokenbucket.Bucket{{Tokens: 50_000, Refilled: 10}}}
	tests := map[string]struct {
		rate, room int
		draw       int64
		tokens     int64 // at once
		most       int64 // ever, without a reply
		each       int64 // refill of a ms
	}{
		"more":           {300, 500, 60_000, 110_000, 260_000, 100},
		"room alone":     {100, 500, 0, 50_000, 200_000, 100},
		"room for all":   {100, 240, 190_000, 240_000, 240_000, 100},
		"less":           {40, 30, -30_000, 20_000, 30_000, 40},
		"tokens back":    {100, 200, -30_000, 20_000, 200_000, 100},
		"rate for room":  {300, 100, 0, 50_000, 100_000, 100},
		"all of it back": {0, 0, -50_000, 0, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := granted(limits, &base, &Plan{Slot: Slot{Rate: tt.rate, Room: tt.room}, Draw: []int64{tt.draw}})
			if got := c.buckets[0].Tokens; got != tt.tokens {
				t.Errorf("tokens: got %d, want %d", got, tt.tokens)
			}
			if got := c.buckets[0].Available(c.params[0], 11); got != min(tt.tokens+tt.each, tt.most) {
				t.Errorf("tokens after 1 ms: got %d, want %d", got, min(tt.tokens+tt.each, tt.most))
			}
			if got := c.buckets[0].Available(c.params[0], 1_000_000); got != tt.most {
				t.Errorf("tokens after a long time: got %d, want %d", got, tt.most)
			}
			c.refill(1_000_000)
			c.confirm(limits)
			if got, want := c.buckets[0].Available(c.params[0], 10_000_000), int64(tt.room)*1000; got != want {
				t.Errorf("tokens a long time after the reply: got %d, want %d", got, want)
			}
		})
	}
}

func TestPortions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		whole := 1 + random.Int64N(1e15)
		n := random.Int64N(whole + 1)
		parts := partsOf(n, whole)
		if portion(whole, parts) < n {
			t.Fatalf("%d parts of %d are %d, less than %d", parts, whole, portion(whole, parts), n)
		}
		if parts > 0 && portion(whole, parts-1) >= n {
			t.Fatalf("%d parts of %d cover %d, and partsOf says %d", parts-1, whole, n, parts)
		}
	}
	if got := partsOf(-1, 10); got != 0 {
		t.Errorf("parts of a debt: got %d, want 0", got)
	}
}

func TestMillitokens(t *testing.T) {
	tests := map[float64]int64{
		math.NaN(): 0, math.Inf(1): 100, math.Inf(-1): 0, -1: 0, 0.9: 0, 1.9: 1, 100: 100, 1e300: 100,
	}
	for amount, want := range tests {
		if got := millitokens(amount, 100); got != want {
			t.Errorf("millitokens(%v): got %d, want %d", amount, got, want)
		}
	}
}

func TestHints(t *testing.T) {
	for x := 0.0006; x < 31; x *= 1.003 {
		if got := DecodeDemand(EncodeDemand(x)); math.Abs(got/x-1) > 0.006 {
			t.Fatalf("demand %v reads as %v", x, got)
		}
		if s := x / 32; s > 0.00003 {
			if got := DecodeStock(EncodeStock(s)); math.Abs(got/s-1) > 0.006 {
				t.Fatalf("stock %v reads as %v", s, got)
			}
		}
		if EncodeDemand(x*1.02) < EncodeDemand(x) {
			t.Fatalf("the hint falls at %v", x)
		}
	}
	for _, x := range []float64{0, -1, 1e-9, math.NaN(), math.Inf(-1)} {
		if got := EncodeDemand(x); got != 0 {
			t.Errorf("demand %v: got code %d, want 0", x, got)
		}
	}
	if got := EncodeDemand(math.Inf(1)); got != Wish-1 {
		t.Errorf("endless demand: got code %d, want %d", got, Wish-1)
	}
	if got := DecodeStock(EncodeStock(1)); got != 1 {
		t.Errorf("the whole reads as %v", got)
	}
	for _, code := range []int{-5, 0, 1, Wish, 1 << 20} {
		if got := DecodeDemand(code); got < 0 || got > 40 || math.IsNaN(got) {
			t.Errorf("code %d reads as %v", code, got)
		}
	}
}

func TestAge(t *testing.T) {
	const now = 1_800_000_000_000
	for age := int64(0); age < 7000; age += 7 {
		s := Slot{At: encodeAt(now - age)}
		if got := s.age(now); got < age-atUnit || got > age+atUnit {
			t.Fatalf("age %d reads as %d", age, got)
		}
	}
	ahead := Slot{At: encodeAt(now + 400)} // by the clock of another replica
	if got := ahead.age(now); got != 0 {
		t.Errorf("a slot of later: got age %d, want 0", got)
	}
}

func TestMaxMin(t *testing.T) {
	tests := []struct {
		own    claim
		others []claim
		want   float64
	}{
		{claim{0.2, 1}, nil, 0.2},
		{claim{2, 1}, nil, 1},
		{claim{2, 1}, []claim{{2, 1}}, 0.5},
		{claim{2, 1}, []claim{{0.1, 1}}, 0.9},
		{claim{0.1, 1}, []claim{{2, 1}}, 0.1},
		{claim{0.5, 1}, []claim{{0.1, 1}, {2, 1}}, 0.45},
		{claim{2, 1}, []claim{{0.1, 1}, {0.2, 1}, {5, 1}}, 0.35},
		{claim{0, 1}, []claim{{3, 1}}, 0},
		{claim{2, 3}, []claim{{2, 1}}, 0.75},
		{claim{2, 1}, []claim{{0.3, 9}}, 0.7},
		{claim{2, 1}, []claim{{0.3, 9}, {5, 6}}, 0.1},
	}
	for _, tt := range tests {
		if got := maxMin(tt.own, tt.others, 1); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("maxMin(%v, %v): got %v, want %v", tt.own, tt.others, got, tt.want)
		}
	}
}

// The shares of all holders add up to the whole at most. None gets more than it asks for,
// and one that is short gets no less for its weight than any other.
func TestMaxMinIsFair(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		claims := make([]claim, 1+random.IntN(20))
		for i := range claims {
			claims[i] = claim{demand: random.ExpFloat64() * 0.2, weight: 0.1 + random.Float64()}
		}
		sum, least := 0.0, math.Inf(1)
		shares := make([]float64, len(claims))
		for i, c := range claims {
			others := append(append([]claim{}, claims[:i]...), claims[i+1:]...)
			shares[i] = maxMin(c, others, 1)
			sum += shares[i]
			if shares[i] > c.demand {
				t.Fatalf("demand %v gets %v", c.demand, shares[i])
			}
			if shares[i] < c.demand-1e-9 {
				least = min(least, shares[i]/c.weight)
			}
		}
		if sum > 1+1e-9 {
			t.Fatalf("shares %v of %v add up to %v", shares, claims, sum)
		}
		for i, s := range shares {
			if s/claims[i].weight > least+1e-9 {
				t.Fatalf("shares %v of %v: one that is short has less for its weight than another", shares, claims)
			}
		}
	}
}

// The demand is right from the first moments on, and fades.
func TestDemand(t *testing.T) {
	d := newDemand(1)
	const start = int64(1_800_000_000_000)
	draws := []Draw{{Limit: 0, Need: 2000, Take: 2000}}
	near := func(now int64, want, within float64) {
		t.Helper()
		if got := d.rate(0, now); math.Abs(got-want) > within*want {
			t.Errorf("after %d ms: got %v millitokens a ms, want %v", now-start, got, want)
		}
	}
	for ms := range int64(1000) {
		d.count(start+ms, draws)
		if ms == 10 || ms == 50 || ms > 100 && ms%100 == 0 {
			near(start+ms, 2000, 0.2)
		}
	}
	near(start+1100, 2000/math.E, 0.1)
	if got, want := d.requests(start+1000), 1.0; math.Abs(got-want) > 0.05 {
		t.Errorf("requests: got %v in a ms, want %v", got, want)
	}
	for at := start + 1900; at < start+1920; at++ {
		d.count(at, draws)
	}
	near(start+1920, 2000, 0.2) // it began anew: nothing of the pause is in the mean
	if got := (&Demand{sums: make([]average, 2)}).rate(0, start); got != 0 {
		t.Errorf("no demand: got %v", got)
	}
}
