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
	if admitted, err := takeOf(s, entity, 1_000_000, at); !admitted || err != nil {
		t.Fatalf("take: %t, %v", admitted, err)
	}
}

// keyOfHour returns the key of the one snapshot of an hour of the entity e.
func keyOfHour(server *valkeytest.Server) string {
	return server.Must("EVAL", "return redis.call('KEYS', '*/ENTITY#e*#USAGE#*#hour#*')[1]", "0")
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

// Where an hour is gone, or is no snapshot in part or in whole, its day and its month are listed with what they have.
func TestUsageWithoutItsHour(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		tokens int64 // that the others have
	}{
		"deleted":        {"redis.call('DEL', KEYS[1])", 1},
		"text":           {"redis.call('SET', KEYS[1], 'text')", 1},
		"an empty value": {"redis.call('HSET', KEYS[1], 'strange', '')", 2},
	} {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Start(t)
			s := onServer(t, server, nil)
			defer func() { _ = s.Close(context.Background()) }()
			for _, entity := range []string{"e", "other"} {
				takeAt(t, s, entity, time.Now())
			}
			key := keyOfHour(server)
			server.Must("EVAL", c.script+" return 'OK'", "1", key)
			for _, w := range []limiter.UsageWindow{limiter.UsageDay, limiter.UsageMonth} {
				if tokens, _ := sumOf(t, s, w); tokens != c.tokens {
					t.Errorf("the snapshots by %v have %d tokens, want %d", w, tokens, c.tokens)
				}
			}
		})
	}
}

// Use is listed while it is purged.
func TestUsageWhileItIsPurged(t *testing.T) {
	server := valkeytest.Start(t)
	s := onServer(t, server, nil)
	defer func() { _ = s.Close(context.Background()) }()
	for i := range 200 {
		takeAt(t, s, fmt.Sprint("e", i), time.Now())
	}
	if _, err := s.Edit(t.Context(), time.Now(), "ns", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Purge(t.Context(), time.Now(), "ns", nil) }()
	for {
		sumOf(t, s, limiter.UsageMonth)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// A sweep that the server refuses a command adds no hour twice.
func TestSweepWithoutAPermission(t *testing.T) {
	for _, command := range []string{"hdel", "hset", "zadd"} {
		t.Run(command, func(t *testing.T) {
			server := withUser(t, userRules)
			s := onServer(t, server, asUser)
			defer func() { _ = s.Close(context.Background()) }()
			takeAt(t, s, "e", time.Now())
			server.Must("ACL", "SETUSER", userName, "-"+command)
			server.Must("EVAL", "for _, key in ipairs(redis.call('KEYS', '*#hour#*')) do redis.call('ZADD', redis.call('KEYS', '*:x')[1], 1, key:match(':i:(.*)')) end return 'OK'", "0")
			sweeps := func() float64 { return server.Info("commandstats", "cmdstat_zrangebyscore:calls=") }
			for before, end := sweeps(), time.Now().Add(recovery); sweeps() < before+3; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("there were no three sweeps")
				}
			}
			if n := server.Must("ACL", "LOG"); n == "0" {
				t.Error("the server has refused nothing")
			}
			server.Must("ACL", "SETUSER", userName, "+"+command)
			swept(t, server)
			for _, w := range limiter.UsageWindows() {
				if tokens, events := sumOf(t, s, w); tokens != 1 || events != 1 {
					t.Errorf("the snapshots by %v have %d tokens and %d writes, want one", w, tokens, events)
				}
			}
		})
	}
}

// A counter of an hour that is no number stays as it is, and the others go on.
func TestCorruptCounter(t *testing.T) {
	server := valkeytest.Start(t)
	s := onServer(t, server, nil)
	defer func() { _ = s.Close(context.Background()) }()
	at := time.Now()
	takeAt(t, s, "e", at)
	key := keyOfHour(server)
	for value, sum := range map[string]string{"Stext": "Stext", "1x": "1x", "5000": "8000"} {
		server.Must("EVAL", "redis.call('HSET', KEYS[1], 'u_l', ARGV[1], 'total_events', '1') return 'OK'", "1", key, value)
		for range 3 {
			takeAt(t, s, "e", at)
		}
		if used, events := server.Must("HGET", key, "u_l"), server.Must("HGET", key, "total_events"); used != sum || events != "4" {
			t.Errorf("after %s and three takes the hour has %s and %s writes, want %s and 4", value, used, events, sum)
		}
	}
}
