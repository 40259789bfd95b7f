package rls

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// everyHeader has all groups of headers, with limits named rpm and tpm.
func everyHeader() Headers {
	return Headers{RetryAfter: true, XRateLimit: true, OpenAI: OpenAIHeaders{Requests: "rpm", Tokens: "tpm"}, IETF: true}
}

func headersOf(wire []byte) map[string]string {
	all := map[string]string{}
	readHeaders(wire, func(name, value string) { all[name] = value })
	return all
}

func TestDuration(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0s"},
		{0, "0s"},
		{1, "1ms"},
		{12 * ms, "12ms"},
		{12*ms + 1, "13ms"},
		{999 * ms, "999ms"},
		{999*ms + 1, "1s"},
		{time.Second, "1s"},
		{1001 * ms, "2s"},
		{59 * time.Second, "59s"},
		{59*time.Second + 1, "1m0s"},
		{6 * time.Minute, "6m0s"},
		{time.Hour, "1h0m0s"},
		{25*time.Hour + 61*time.Second, "25h1m1s"},
		{math.MaxInt64, "2562047h47m16s"}, // the most whole seconds that a duration holds
	} {
		if got := string(appendDuration(nil, tt.d)); got != tt.want {
			t.Errorf("%d ns: got %s, want %s", tt.d, got, tt.want)
		}
	}
}

func TestDurationParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "ns"))
		text := string(appendDuration(nil, d))
		got, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if text != got.String() {
			t.Errorf("%d ns: got %s, which Go writes %s", d, text, got)
		}
		precision := time.Millisecond
		if d > time.Second-precision {
			precision = time.Second
		}
		if whole := time.Duration(math.MaxInt64).Truncate(time.Second); d <= whole && (got < d || got-d >= precision) {
			t.Errorf("%d ns: got %s, want it rounded up to %s", d, text, precision)
		}
	})
}

func TestFillSeconds(t *testing.T) {
	for _, tt := range []struct {
		limit limiter.Limit
		want  int64
	}{
		{limiter.PerMinute("l", 100), 60},
		{limiter.PerMinute("l", 100).WithBurst(150), 90},
		{limiter.PerMinute("l", 100).WithBurst(1), 1},
		{limiter.PerSecond("l", 1_000_000).WithBurst(1), 1},
		{limiter.Custom("l", 7, 3, 10*time.Second), 24}, // 23.4 s
		{limiter.Custom("l", limiter.MaxTokens, 1, 366*24*time.Hour), math.MaxInt64/int64(time.Second) + 1},
	} {
		if got := fillSeconds(&tt.limit); got != tt.want {
			t.Errorf("%s: got %d s, want %d", tt.limit, got, tt.want)
		}
	}
}

// answerTo is the answer to a call that consumes limits with these statuses.
func answerTo(denied bool, statuses ...limiter.LimitStatus) *call {
	c := &call{ruling: ruling{options: Options{Headers: everyHeader()}, verdict: verdict{denied: denied}}}
	c.decision.Statuses = statuses
	if denied {
		c.decision.Reason = limiter.ReasonExhausted
		for _, s := range statuses {
			c.decision.RetryAfter = max(c.decision.RetryAfter, s.RetryAfter)
		}
	}
	return c
}

// TestTightestOfEachName checks several statuses of one name: of two levels, two takes, two
// descriptors.
func TestTightestOfEachName(t *testing.T) {
	rpm, org, tpm := limiter.PerMinute("rpm", 10), limiter.PerHour("rpm", 500), limiter.PerMinute("tpm", 1000)
	has := func(l *limiter.Limit, tokens int64) limiter.LimitStatus {
		return limiter.LimitStatus{Limit: l, Available: tokens * limiter.Milli, Reset: time.Second}
	}
	denied := func(l *limiter.Limit, tokens int64, wait time.Duration) limiter.LimitStatus {
		return limiter.LimitStatus{Limit: l, Available: tokens * limiter.Milli, Exceeded: true, RetryAfter: wait, Reset: time.Hour}
	}
	never := limiter.LimitStatus{Limit: &rpm, Available: 3000, Exceeded: true, Never: true, Reset: time.Hour}
	for _, tt := range []struct {
		name             string
		c                *call
		requests, tokens []string // limit, remaining, reset
		policy, state    string
	}{
		{
			"the fewest tokens", answerTo(false, has(&tpm, 900), has(&rpm, 9), has(&org, 3), has(&tpm, 950)),
			[]string{"500", "3", "1s"},
			[]string{"1000", "900", "1s"},
			`"tpm";q=1000;w=60, "rpm";q=500;w=3600`, `"tpm";r=900;t=1, "rpm";r=3;t=1`,
		},
		{
			"one denies", answerTo(true, has(&rpm, 9), denied(&tpm, -50, 1500*time.Millisecond), has(&tpm, 1), denied(&tpm, 20, 12*time.Millisecond)),
			[]string{"10", "9", "1s"},
			[]string{"1000", "0", "2s"},
			`"rpm";q=10;w=60, "tpm";q=1000;w=60`, `"rpm";r=9;t=1, "tpm";r=0;t=2`,
		},
		{
			"the one that never passes", answerTo(true, denied(&org, 0, time.Hour), never, has(&tpm, 5)),
			[]string{"10", "3", ""},
			[]string{"1000", "5", "1s"},
			`"rpm";q=10;w=60, "tpm";q=1000;w=60`, `"rpm";r=3, "tpm";r=5;t=1`,
		},
		{
			"only one of them is asked", answerTo(true, denied(&org, 0, 12*time.Millisecond)),
			[]string{"500", "0", "12ms"},
			[]string{"", "", ""},
			`"rpm";q=500;w=3600`, `"rpm";r=0;t=1`,
		},
		{
			"never more than the limit", answerTo(false, has(&rpm, 11)),
			[]string{"10", "10", "1s"},
			[]string{"", "", ""},
			`"rpm";q=10;w=60`, `"rpm";r=10;t=1`,
		},
	} {
		got := headersOf(tt.c.appendHeaders(nil, tightest(tt.c.decision.Statuses), &refusal{}))
		family := func(of string) []string {
			return []string{got["x-ratelimit-limit-"+of], got["x-ratelimit-remaining-"+of], got["x-ratelimit-reset-"+of]}
		}
		want := [][]string{tt.requests, tt.tokens, {tt.policy, tt.state}}
		if diff := cmp.Diff(want, [][]string{family("requests"), family("tokens"), {got["ratelimit-policy"], got["ratelimit"]}}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// More names than there is room for on the stack.
func TestManyNames(t *testing.T) {
	statuses := make([]limiter.LimitStatus, 3*limiter.MaxLimits)
	for i := range statuses {
		l := limiter.PerMinute("l"+string(rune('a'+i%26))+string(rune('a'+i/26)), 1)
		statuses[i] = limiter.LimitStatus{Limit: &l}
	}
	if got := len(tightestByName(nil, statuses)); got != len(statuses) {
		t.Errorf("got %d names, want %d", got, len(statuses))
	}
}
