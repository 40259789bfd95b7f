package valkey_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// openHours counts the marks of hours that are not in their day and their month yet: of days and months, and of hours.
const openHours = `
local days, hours = 0, 0
for _, key in ipairs(redis.call('KEYS', '*#USAGE#*')) do
  for _, name in ipairs(redis.call('HKEYS', key)) do
    if name:sub(1, 1) == '<' then days = days + 1 elseif name:sub(1, 1) == '>' then hours = hours + 1 end
  end
end
return days .. ' ' .. hours
`

// takeAt takes a token of an entity at a time.
func takeAt(t *testing.T, s *valkey.Store, entity string, at time.Time) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerHour("l", 1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := s.Take(t.Context(), at, []limiter.Op{{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: entity, Resource: "r"}, Limits: limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}})
	if !admitted || err != nil {
		t.Fatalf("take: %t, %v", admitted, err)
	}
}

// sumOf returns the tokens of all snapshots of a window, and the writes that they count.
func sumOf(t *testing.T, s *valkey.Store, w limiter.UsageWindow) (tokens, events int64) {
	t.Helper()
	p := limiter.Page{}
	for {
		page, err := s.ListUsage(t.Context(), "ns", limiter.UsageFilter{Window: w}, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Items {
			events += u.Events
			for _, l := range u.Limits {
				tokens += l.Tokens
			}
		}
		if p.After = page.Next; p.After == "" {
			return tokens / limiter.Milli, events
		}
	}
}

// swept waits until a sweep has looked at all that it is to look at.
func swept(t *testing.T, server *valkeytest.Server) {
	t.Helper()
	const due = "return tostring(redis.call('ZCOUNT', redis.call('KEYS', '*:x')[1], '-inf', redis.call('TIME')[1] - 3700))"
	for end := time.Now().Add(recovery); server.Must("EVAL", due, "0") != "0"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the sweep has left something")
		}
	}
}

// Use counts once in each window: while its hour is open, once it is over and in its day and month, and where a write
// comes later still.
func TestUseOfHoursThatAreOver(t *testing.T) {
	const takes, hours = 300, 40 // all of them are kept
	server := valkeytest.Start(t)
	s := onServer(t, server, nil)
	defer func() { _ = s.Close(context.Background()) }()
	r := rand.New(rand.NewPCG(3, 4))
	for n := int64(1); n <= takes; n++ {
		at := time.Now().Add(-time.Duration(r.IntN(hours)) * time.Hour)
		takeAt(t, s, fmt.Sprint("e", n%7), at)
		if n%20 != 0 {
			continue
		}
		for _, w := range limiter.UsageWindows() {
			if tokens, events := sumOf(t, s, w); tokens != n || events != n {
				t.Fatalf("after %d takes of a token the snapshots by %v have %d, of %d writes", n, w, tokens, events)
			}
		}
	}
	swept(t, server)
	var days, marks int
	if _, err := fmt.Sscan(server.Must("EVAL", openHours, "0"), &days, &marks); err != nil {
		t.Fatal(err)
	}
	if most := 3 * 2 * 7; days > most || marks > most { // three hours of each bucket may be open: in a day and in a month
		t.Errorf("%d marks of open hours are left in days and months, and %d in hours, want at most %d", days, marks, most)
	}
	for _, w := range limiter.UsageWindows() {
		if tokens, events := sumOf(t, s, w); tokens != takes || events != takes {
			t.Errorf("the snapshots by %v have %d tokens of %d, and %d writes", w, tokens, takes, events)
		}
	}
}

// What is no snapshot in the place of one is left as it is, and hinders no take.
func TestWhatIsNoSnapshot(t *testing.T) {
	for _, window := range limiter.UsageWindows() {
		t.Run(window.String(), func(t *testing.T) {
			server := valkeytest.Start(t)
			s := onServer(t, server, nil)
			defer func() { _ = s.Close(context.Background()) }()
			at := time.Now().Add(-5 * time.Hour)
			takeAt(t, s, "e", at)
			server.Must("EVAL", "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('SET', key, 'text') end return 'OK'", "0", "*#USAGE#*#"+window.String()+"#*")
			for i := range 3 {
				takeAt(t, s, "e", at)
				takeAt(t, s, fmt.Sprint("other", i), at)
			}
			swept(t, server)
			takeAt(t, s, "e", at)
			found := server.Must("EVAL", "return table.concat(redis.call('KEYS', ARGV[1]), ' ') .. redis.call('GET', redis.call('KEYS', ARGV[1])[1])", "0", "*/ENTITY#e*#USAGE#*#"+window.String()+"#*")
			if !strings.HasSuffix(found, "text") {
				t.Errorf("what is no snapshot became %q", found)
			}
		})
	}
}
