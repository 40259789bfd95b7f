package tokenbucket_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	start = int64(1_700_000_000_000) // some day in 2023
)

// rate returns the parameters of a limit in whole tokens.
func rate(capacity, amount, period int64) tokenbucket.Params {
	return tokenbucket.Params{Capacity: capacity * tokenbucket.Milli, Amount: amount * tokenbucket.Milli, Period: period}
}

// ask is a line of a script. At this time after start the bucket has this many millitokens. A
// request for n of them passes or not. retry is the time until it passes.
type ask struct {
	at    int64
	have  int64
	n     int64
	ok    bool
	retry int64
}

func TestTryConsume(t *testing.T) {
	tests := []struct {
		name   string
		params tokenbucket.Params
		script []ask
	}{
		{"a burst, then one a second", rate(3, 1, second), []ask{
			{at: 0, have: 3000, n: 2000, ok: true},
			{at: 0, have: 1000, n: 1000, ok: true},
			{at: 0, have: 0, n: 1000, retry: 1000},
			{at: 1, have: 1, n: 1000, retry: 999},
			{at: 999, have: 999, n: 1000, retry: 1},
			{at: 1000, have: 1000, n: 1000, ok: true},
			{at: 1999, have: 999, n: 2000, retry: 1001},
			{at: 9000, have: 3000, n: 3000, ok: true},
		}},
		{"three in seven seconds leave remainders", rate(3, 3, 7*second), []ask{
			{at: 0, have: 3000, n: 3000, ok: true},
			{at: 1, have: 0, n: 1, retry: 2},
			{at: 2, have: 0, n: 1, retry: 1},
			{at: 3, have: 1, n: 1, ok: true},
			{at: 4, have: 0, n: 1, retry: 1},
			{at: 5, have: 1, n: 1, ok: true},
			{at: 7, have: 1, n: 2, retry: 3},
			{at: 2334, have: 998, n: 998, ok: true},
			{at: 7000, have: 2000, n: 2000, ok: true},
		}},
		{"faster than a millitoken a millisecond", rate(10, 10, second), []ask{
			{at: 0, have: 10_000, n: 10_000, ok: true},
			{at: 1, have: 10, n: 11, retry: 1},
			{at: 1, have: 10, n: 11, retry: 1},
			{at: 2, have: 20, n: 20, ok: true},
			{at: 2, have: 0, n: 1, retry: 1},
		}},
		{"a peek needs a whole token and takes none", rate(1, 1, second), []ask{
			{at: 0, have: 1000, n: 0, ok: true},
			{at: 0, have: 1000, n: 1, ok: true},
			{at: 0, have: 999, n: 0, retry: 1},
			{at: 1, have: 1000, n: 0, ok: true},
			{at: 1, have: 1000, n: 1000, ok: true},
			{at: 1, have: 0, n: 0, retry: 1000},
		}},
		{"less than nothing is a peek", rate(2, 1, second), []ask{
			{at: 0, have: 2000, n: 1500, ok: true},
			{at: 0, have: 500, n: -1, retry: 500},
			{at: 500, have: 1000, n: math.MinInt64, ok: true},
			{at: 500, have: 1000, n: 1000, ok: true},
		}},
		{"a clock that goes back refills nothing", rate(2, 1, second), []ask{
			{at: 1000, have: 2000, n: 2000, ok: true},
			{at: 0, have: 0, n: 1000, retry: 2000},
			{at: -5000, have: 0, n: 1000, retry: 7000},
			{at: 1500, have: 500, n: 1000, retry: 500},
			{at: 500, have: 500, n: 500, ok: true},
			{at: 1500, have: 0, n: 1, retry: 1},
			{at: 2500, have: 1000, n: 1000, ok: true},
		}},
		{"a clock that jumps back and forth mints nothing", rate(5, 1, second), []ask{
			{at: 0, have: 5000, n: 5000, ok: true},
			{at: 1000, have: 1000, n: 1000, ok: true},
			{at: 0, have: 0, n: 1, retry: 1001},
			{at: 1000, have: 0, n: 1, retry: 1},
			{at: 0, have: 0, n: 1, retry: 1001},
			{at: 1000, have: 0, n: 1, retry: 1},
			{at: 1001, have: 1, n: 1, ok: true},
		}},
		{"one in 366 days", rate(1, 1, 366*day), []ask{
			{at: 0, have: 1000, n: 1000, ok: true},
			{at: 31_622_399, have: 0, n: 1, retry: 1},
			{at: 31_622_400, have: 1, n: 1000, retry: 366*day - 31_622_400},
			{at: 366*day - 1, have: 999, n: 1000, retry: 1},
			{at: 366 * day, have: 1000, n: 1000, ok: true},
		}},
		{"10^12 a second, held for 366 days: products of 128 bits", rate(1_000_000_000_000, 1_000_000_000_000, second), []ask{
			{at: 0, have: 1e15, n: 1e15, ok: true},
			{at: 1, have: 1e12, n: 1e12 + 1, retry: 1},
			{at: 2, have: 2e12, n: 2e12, ok: true},
			{at: 366 * day, have: 1e15, n: 1e15, ok: true},
			{at: 366*day + 999, have: 999e12, n: 1e15, retry: 1},
		}},
		{"10^12 in 366 days: products of 128 bits below the capacity", rate(1_000_000_000_000, 1_000_000_000_000, 366*day), []ask{
			{at: 0, have: 1e15, n: 1e15, ok: true},
			{at: 183 * day, have: 5e14, n: 1e15, retry: 183 * day},
			{at: 366 * day, have: 1e15, n: 1e15, ok: true},
			{at: 366*day + 1, have: 31_623, n: 31_624, retry: 1},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bucket := tokenbucket.Full(tt.params, start+tt.script[0].at)
			for i, line := range tt.script {
				now := start + line.at
				got := ask{at: line.at, have: bucket.Available(tt.params, now), n: line.n}
				got.retry, _ = bucket.RetryAfter(tt.params, line.n, now)
				bucket, got.ok = bucket.TryConsume(tt.params, line.n, now)
				if diff := cmp.Diff(line, got, cmp.AllowUnexported(ask{})); diff != "" {
					t.Fatalf("line %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestSlowRefillUnderPolling: a limit that gains less than a millitoken between two peeks gains it
// all the same.
func TestSlowRefillUnderPolling(t *testing.T) {
	tenADay := rate(10, 10, day)
	bucket := tokenbucket.Bucket{Refilled: start}
	for at := int64(0); at <= 800*second; at += 8 * second {
		bucket = bucket.Refill(tenADay, start+at)
	}
	if bucket.Tokens != 92 { // 800 s · 10,000 / 86,400 s = 92.6
		t.Errorf("balance after 800 s of 10 a day, asked every 8 s: got %d millitokens, want 92", bucket.Tokens)
	}
}

func TestForceConsume(t *testing.T) {
	twoASecond := rate(10, 2, second)
	tests := []struct {
		name         string
		tokens, rest int64
		after        int64 // milliseconds since the last refill
		amount       int64
		want         tokenbucket.Bucket
	}{
		{"takes within the balance", 10_000, 0, 0, 4000, tokenbucket.Bucket{Tokens: 6000}},
		{"takes more than the balance", 1000, 0, 0, 4000, tokenbucket.Bucket{Tokens: -3000}},
		{"refills first", 1000, 0, 500, 4000, tokenbucket.Bucket{Tokens: -2000}},
		{"refills debt", -3000, 0, 1500, 0, tokenbucket.Bucket{}},
		{"keeps the remainder", 1000, 7, 0, 4000, tokenbucket.Bucket{Tokens: -3000, Remainder: 7}},
		{"a refund", -3000, 7, 0, -4000, tokenbucket.Bucket{Tokens: 1000, Remainder: 7}},
		{"a refund up to the capacity", 9000, 7, 0, -1000, tokenbucket.Bucket{Tokens: 10_000}},
		{"a refund of more is cut", 9000, 7, 0, -tokenbucket.MaxAmount, tokenbucket.Bucket{Tokens: 10_000}},
		{"refills up to the capacity before it takes", 9000, 7, hour, 4000, tokenbucket.Bucket{Tokens: 6000}},
		{"stops at the greatest debt", -tokenbucket.MaxAmount + 1, 7, 0, 2, tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount}},
		{"reaches the greatest debt", -tokenbucket.MaxAmount + 1, 7, 0, 1, tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount, Remainder: 7}},
		{"cuts a charge that is too great", 0, 0, 0, math.MaxInt64, tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount}},
		{"cuts a refund that is too great", -tokenbucket.MaxAmount, 0, 0, math.MinInt64, tokenbucket.Bucket{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bucket := tokenbucket.Bucket{Tokens: tt.tokens, Remainder: tt.rest, Refilled: start}
			tt.want.Refilled = start + tt.after
			got := bucket.ForceConsume(twoASecond, tt.amount, start+tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ForceConsume(%d) (-want +got):\n%s", tt.amount, diff)
			}
		})
	}
}

// TestLoweredLimit: a balance above a new capacity is cut at once, also when no
// time has passed and when the clock went back.
func TestLoweredLimit(t *testing.T) {
	was, is := rate(100, 100, minute), rate(10, 10, minute)
	for _, after := range []int64{-hour, 0, 1, hour} {
		want := tokenbucket.Bucket{Tokens: 10_000, Refilled: max(start, start+after)}
		bucket := tokenbucket.Full(was, start)
		if got := bucket.Refill(is, start+after); got != want {
			t.Errorf("Refill after %d ms: got %+v, want %+v", after, got, want)
		}
		if got := bucket.Reparameterize(was, is, start+after); got != want {
			t.Errorf("Reparameterize after %d ms: got %+v, want %+v", after, got, want)
		}
		if _, ok := bucket.TryConsume(is, 10_001, start+after); ok {
			t.Errorf("TryConsume after %d ms took more than the new capacity", after)
		}
		if got := bucket.TimeToFull(is, start+after); got != 0 {
			t.Errorf("TimeToFull after %d ms: got %d, want 0", after, got)
		}
	}
}

func TestReparameterize(t *testing.T) {
	tests := []struct {
		name     string
		bucket   tokenbucket.Bucket
		from, to tokenbucket.Params
		after    int64
		want     tokenbucket.Bucket
	}{
		{
			"earlier refill counts at the old rate",
			tokenbucket.Bucket{},
			rate(10, 1, second), rate(10, 100, second), 2500,
			tokenbucket.Bucket{Tokens: 2500},
		},
		{
			"a raise adds its difference",
			tokenbucket.Bucket{Tokens: 4000},
			rate(10, 1, second), rate(100, 100, second), 0,
			tokenbucket.Bucket{Tokens: 94_000},
		},
		{
			"a raised limit that was full is full",
			tokenbucket.Bucket{Tokens: 10_000},
			rate(10, 1, second), rate(100, 100, second), 0,
			tokenbucket.Bucket{Tokens: 100_000},
		},
		{
			// 86,399,999 of 86,400,000 parts of a millitoken would be 86 tokens of a limit per second.
			"a remainder in days is none in seconds",
			tokenbucket.Bucket{Tokens: 3, Remainder: day - 1},
			rate(1, 1, day), rate(1, 1, second), 0,
			tokenbucket.Bucket{Tokens: 3},
		},
		{
			"debt stays, and carries the use that the capacity does not show",
			tokenbucket.Bucket{Tokens: -50_000},
			rate(100, 1, second), rate(10, 1, second), 1000,
			tokenbucket.Bucket{Tokens: -49_000, Carried: 90_000},
		},
		{
			"debt is raised too",
			tokenbucket.Bucket{Tokens: -50_000},
			rate(10, 1, second), rate(100, 1, second), 1000,
			tokenbucket.Bucket{Tokens: 41_000},
		},
		{
			"a lowered limit cuts",
			tokenbucket.Bucket{Tokens: 60_000},
			rate(100, 1, second), rate(10, 1, second), 0,
			tokenbucket.Bucket{Tokens: 10_000, Carried: 40_000},
		},
		{
			"a raise adds less with carried use",
			tokenbucket.Bucket{Tokens: 3000, Carried: 40_000},
			rate(10, 1, second), rate(70, 1, second), 0,
			tokenbucket.Bucket{Tokens: 23_000},
		},
		{
			"a raise below the carried use adds nothing",
			tokenbucket.Bucket{Tokens: 3000, Carried: 40_000},
			rate(10, 1, second), rate(40, 1, second), 2000,
			tokenbucket.Bucket{Tokens: 5000, Carried: 10_000},
		},
		{
			"refill beyond full makes up for carried use",
			tokenbucket.Bucket{Tokens: 3000, Carried: 40_000},
			rate(10, 1, second), rate(10, 5, second), 27_000,
			tokenbucket.Bucket{Tokens: 10_000, Carried: 20_000},
		},
		{
			"a lowered number without refill counts what is taken, in debt too",
			tokenbucket.Bucket{Tokens: 40_000},
			rate(100, 0, second), rate(50, 0, hour), 0,
			tokenbucket.Bucket{Tokens: -10_000},
		},
		{
			"such debt is over with a raise",
			tokenbucket.Bucket{Tokens: -10_000},
			rate(50, 0, hour), rate(70, 0, second), 0,
			tokenbucket.Bucket{Tokens: 10_000},
		},
		{
			"a limit that refills from now on is cut",
			tokenbucket.Bucket{Tokens: 40_000},
			rate(100, 0, second), rate(50, 1, second), 0,
			tokenbucket.Bucket{Tokens: 40_000, Carried: 50_000},
		},
		{
			"a clock that went back changes the limit and no time",
			tokenbucket.Bucket{Tokens: 500},
			rate(10, 1, second), rate(20, 5, second), -hour,
			tokenbucket.Bucket{Tokens: 10_500},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.bucket.Refilled = start
			tt.want.Refilled = max(start, start+tt.after)
			if diff := cmp.Diff(tt.want, tt.bucket.Reparameterize(tt.from, tt.to, start+tt.after)); diff != "" {
				t.Errorf("Reparameterize (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNever: more than the capacity never passes, and nothing else never does.
func TestNever(t *testing.T) {
	tests := []struct {
		name     string
		capacity int64
		amount   int64
		want     bool // can pass
	}{
		{"the capacity", 5000, 5000, true},
		{"one millitoken more", 5000, 5001, false},
		{"a peek at one token", 1000, 0, true},
		{"a peek at less than one token", 999, 0, false},
		{"the most of the most", tokenbucket.MaxCapacity, tokenbucket.MaxCapacity, true},
		{"the greatest amount", tokenbucket.MaxCapacity, tokenbucket.MaxAmount, false},
		{"beyond the greatest amount", tokenbucket.MaxCapacity, math.MaxInt64, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := tokenbucket.Params{Capacity: tt.capacity, Amount: 1, Period: day}
			bucket := tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount, Refilled: start}
			retry, got := bucket.RetryAfter(p, tt.amount, start)
			if got != tt.want {
				t.Errorf("RetryAfter(%d): can pass %v, want %v", tt.amount, got, tt.want)
			}
			status := bucket.Status(p, tt.amount, start)
			if status.Never == tt.want || status.RetryAfter != retry {
				t.Errorf("Status(%d) does not agree with RetryAfter = %d, %v: %+v", tt.amount, retry, got, status)
			}
			if status.Deficit <= 0 {
				t.Errorf("Status(%d).Deficit: got %d, want above 0", tt.amount, status.Deficit)
			}
		})
	}
}

// TestForever: waits that do not fit are cut to Forever, never wrapped.
func TestForever(t *testing.T) {
	ticks := func(amount, period int64) tokenbucket.Params {
		return tokenbucket.Params{Capacity: tokenbucket.MaxCapacity, Amount: amount, Period: period}
	}
	const forever = int64(tokenbucket.Forever)
	tests := []struct {
		name   string
		params tokenbucket.Params
		bucket tokenbucket.Bucket
		amount int64
		now    int64
		want   int64
	}{
		{"a quotient of more than 64 bits", ticks(1, tokenbucket.MaxPeriod), tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount}, tokenbucket.MaxCapacity, 0, forever},
		{"one below", ticks(1000, 1000), tokenbucket.Bucket{}, forever - 1, 0, forever - 1},
		{"just", ticks(1000, 1000), tokenbucket.Bucket{}, forever, 0, forever},
		{"one above", ticks(1000, 1000), tokenbucket.Bucket{}, forever + 1, 0, forever},
		{"rounded up to it", ticks(1001, 1000), tokenbucket.Bucket{Tokens: -9_223_372_036}, forever, 0, forever},
		// 55,340,232,221,128,655 · 1000 − 154 = 3·(2^64 − 1) + 1: three a second take
		// 2^64 − 1 ms and a third, which rounds up to 2^64.
		{"rounded up beyond 64 bits", ticks(3, 1000), tokenbucket.Bucket{Tokens: 1 - 55_340_232_221_128_655, Remainder: 154}, 1, 0, forever},
		{"a clock that went back", ticks(1000, 1000), tokenbucket.Bucket{Refilled: 1000}, forever - 1001, 0, forever - 1},
		{"a clock that went back to it", ticks(1000, 1000), tokenbucket.Bucket{Refilled: 1000}, forever - 1000, 0, forever},
		{"a clock that went back beyond it", ticks(1000, 1000), tokenbucket.Bucket{Refilled: 1000}, forever - 999, 0, forever},
		{"the longest way back", ticks(1000, 1000), tokenbucket.Bucket{Refilled: math.MaxInt64}, 1, math.MinInt64, forever},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.bucket.RetryAfter(tt.params, tt.amount, tt.now)
			if got != tt.want || !ok {
				t.Errorf("RetryAfter: got %d, %v; want %d, true", got, ok, tt.want)
			}
		})
	}
}

// TestWordBoundary: adding the remainder carries into the high word of a product
// of 128 bits, and taking it away borrows from there.
func TestWordBoundary(t *testing.T) {
	p := tokenbucket.Params{Capacity: tokenbucket.MaxCapacity, Amount: 1<<32 + 1, Period: 1000}
	bucket := tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount, Remainder: 1}
	got := bucket.Refill(p, 1<<32-1) // (2^32 − 1)(2^32 + 1) + 1 = 2^64
	want := tokenbucket.Bucket{Tokens: 18_446_744_073_709_551 - tokenbucket.MaxAmount, Remainder: 616, Refilled: 1<<32 - 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Refill that carries (-want +got):\n%s", diff)
	}

	p.Amount = tokenbucket.MaxCapacity
	bucket = tokenbucket.Bucket{Tokens: 1 - 18_446_744_073_709_552, Remainder: 385}
	if got, _ := bucket.RetryAfter(p, 1, 0); got != 18_447 { // (2^64 + 384 − 385) / 10^15
		t.Errorf("RetryAfter that borrows: got %d ms, want 18447", got)
	}
}

// TestLongestSpan: a bucket that was last used at the beginning of time is full at its end, after
// any debt and with any refill.
func TestLongestSpan(t *testing.T) {
	fast, slow := rate(1, 1_000_000_000_000, second), rate(1, 1, 366*day)
	for _, p := range []tokenbucket.Params{fast, slow} {
		bucket := tokenbucket.Bucket{Refilled: math.MinInt64}
		want := tokenbucket.Bucket{Tokens: p.Capacity, Refilled: math.MaxInt64}
		if got := bucket.Refill(p, math.MaxInt64); got != want {
			t.Errorf("Refill of %+v: got %+v, want %+v", p, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	p := rate(10, 1, second)
	tests := []struct {
		name   string
		tokens int64
		amount int64
		want   tokenbucket.Status
	}{
		{"passes", 4000, 4000, tokenbucket.Status{Available: 4000, TimeToFull: 6000}},
		{"full", 10_000, 1, tokenbucket.Status{Available: 10_000}},
		{"too little", 4000, 4500, tokenbucket.Status{Available: 4000, Deficit: 500, RetryAfter: 500, TimeToFull: 6000}},
		{"debt", -1000, 1, tokenbucket.Status{Available: -1000, Deficit: 1001, RetryAfter: 1001, TimeToFull: 11_000}},
		{"look", 400, 0, tokenbucket.Status{Available: 400, Deficit: 600, RetryAfter: 600, TimeToFull: 9600}},
		{"never", 4000, 10_001, tokenbucket.Status{Available: 4000, Deficit: 6001, Never: true, TimeToFull: 6000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bucket := tokenbucket.Bucket{Tokens: tt.tokens, Refilled: start}
			if diff := cmp.Diff(tt.want, bucket.Status(p, tt.amount, start)); diff != "" {
				t.Errorf("Status(%d) (-want +got):\n%s", tt.amount, diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	valid := rate(1, 1, second)
	with := func(change func(*tokenbucket.Params)) tokenbucket.Params {
		p := valid
		change(&p)
		return p
	}
	tests := []struct {
		name   string
		params tokenbucket.Params
		want   string // "" = valid
	}{
		{"least", tokenbucket.Params{Capacity: 1, Amount: 1, Period: tokenbucket.MinPeriod}, ""},
		{"greatest", tokenbucket.Params{Capacity: tokenbucket.MaxCapacity, Amount: tokenbucket.MaxCapacity, Period: tokenbucket.MaxPeriod}, ""},
		{
			"no capacity", with(func(p *tokenbucket.Params) { p.Capacity = 0 }),
			"invalid token bucket parameters: capacity 0 millitokens is not in 1 to 1000000000000000",
		},
		{
			"too much capacity", with(func(p *tokenbucket.Params) { p.Capacity = tokenbucket.MaxCapacity + 1 }),
			"invalid token bucket parameters: capacity 1000000000000001 millitokens is not in 1 to 1000000000000000",
		},
		{
			"less than no refill", with(func(p *tokenbucket.Params) { p.Amount = -1 }),
			"invalid token bucket parameters: refill amount -1 millitokens is not in 0 to 1000000000000000",
		},
		{
			"too much refill", with(func(p *tokenbucket.Params) { p.Amount = tokenbucket.MaxCapacity + 1 }),
			"invalid token bucket parameters: refill amount 1000000000000001 millitokens is not in 0 to 1000000000000000",
		},
		{
			"too short", with(func(p *tokenbucket.Params) { p.Period = 999 }),
			"invalid token bucket parameters: refill period 999 ms is not in 1000 to 31622400000",
		},
		{
			"too long", with(func(p *tokenbucket.Params) { p.Period = 366*day + 1 }),
			"invalid token bucket parameters: refill period 31622400001 ms is not in 1000 to 31622400000",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.params.Validate()
			if tt.want == "" {
				if err != nil {
					t.Fatalf("Validate: got %q, want no error", err)
				}
				return
			}
			if !errors.Is(err, tokenbucket.ErrParams) || err.Error() != tt.want {
				t.Errorf("Validate: got %q, want %q", err, tt.want)
			}
		})
	}
}

// A crash may leave a bucket that carries the greatest use that there is, beside its capacity. A smaller
// capacity then carries no more.
func TestCarriedUseIsBounded(t *testing.T) {
	from := tokenbucket.Params{Capacity: 200_000, Amount: 1000, Period: 60_000}
	to := tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 60_000}
	b := tokenbucket.Bucket{Carried: tokenbucket.MaxCapacity}.Reparameterize(from, to, 0)
	if b.Carried != tokenbucket.MaxCapacity || b.Tokens != 0 {
		t.Errorf("the bucket is %+v", b)
	}
}

// An extra is used first, does not refill, comes back with refunds, and stays under other limits.
func TestExtra(t *testing.T) {
	p := rate(5, 5, minute)
	b, ok := tokenbucket.Full(p, start).TryConsume(p, 3000, start)
	if !ok {
		t.Fatal("3 of 5 tokens were denied")
	}
	step := func(what string, next tokenbucket.Bucket, done bool, want int64) {
		t.Helper()
		if b = next; !done || b.Tokens != want || b.Extra() != max(want-p.Capacity, 0) {
			t.Fatalf("%s: %v, %+v, want %d millitokens", what, done, b, want)
		}
	}
	take := func(amount, now, want int64) {
		t.Helper()
		next, ok := b.TryConsume(p, amount, now)
		step("a take", next, ok, want)
	}
	next, ok := b.TopUp(p, 25_000, start)
	step("a top-up", next, ok, 27_000)
	now := start + 10*minute
	step("refill", b.Refill(p, now), true, 27_000)
	if b.Unused(p, now) || b.TimeToUnused(p, now) != tokenbucket.Forever || b.Use(p, now) != 0 || b.TimeToFull(p, now) != 0 {
		t.Errorf("a bucket with an extra counts as one without: %+v", b)
	}
	take(20_000, now, 7000)
	step("a refund", b.ForceConsume(p, -4000, now), true, 11_000)
	to := rate(2, 2, minute)
	b, p = b.Reparameterize(p, to, now), to
	step("a lower limit", b, true, 8000)
	take(7000, now, 1000)
	step("refill below the capacity", b.Refill(p, now+minute), true, 2000)
	carrying := tokenbucket.Bucket{Tokens: 2000, Refilled: now, Carried: 10}
	if _, ok := carrying.TopUp(p, 1, now); ok {
		t.Error("an extra beside carried use")
	}
	if got, ok := b.TopUp(p, tokenbucket.MaxAmount, now); ok {
		t.Errorf("a balance above the range: %+v", got)
	}
}
