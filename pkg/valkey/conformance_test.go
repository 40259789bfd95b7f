package valkey_test

import (
	"context"
	"flag"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// randomCases is how many cases the random checks run: each step is a message.
const randomCases = 25

func TestConformance(t *testing.T) {
	server := valkeytest.Start(t)
	rapidChecks(t, randomCases)
	storetest.Run(t, func(t *testing.T) limiter.Store { return onServer(t, server, nil) })
}

func TestConformanceWithLeases(t *testing.T) {
	server := withUser(t, userRules)
	rapidChecks(t, randomCases)
	storetest.Run(t, func(t *testing.T) limiter.Store {
		return onServer(t, server, func(cfg *valkey.Config) {
			asUser(cfg)
			cfg.Leases = true
		})
	})
	if n := server.Must("ACL", "LOG"); n != "0" {
		t.Errorf("the server has refused %s kinds of calls of the user", n)
	}
}

func TestControl(t *testing.T) {
	server := valkeytest.Start(t)
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return onServer(t, server, nil) })
}

func TestExpiredEvents(t *testing.T) {
	storetest.RunExpiry(t, onServer(t, valkeytest.Start(t), func(cfg *valkey.Config) { cfg.AuditRetention = time.Nanosecond }))
}

func TestBuckets(t *testing.T) {
	server := valkeytest.Start(t)
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return onServer(t, server, nil) })
}

// onServer returns a store on a new table of a server. Its log is that of the test.
func onServer(t *testing.T, server *valkeytest.Server, change func(*valkey.Config)) *valkey.Store {
	t.Helper()
	s, err := valkey.Open(t.Context(), configOf(t, server, change))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func configOf(t *testing.T, server *valkeytest.Server, change func(*valkey.Config)) valkey.Config {
	t.Helper()
	cfg := valkey.Config{
		Connection: valkey.Connection{Addresses: []string{server.Address}}, Name: nameOf(t), Create: true,
		Attempt: 20 * time.Second, Budget: time.Minute, PurgeWait: -1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// nameOf returns the name of a table of a test.
func nameOf(t *testing.T) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/# ,+|", r) {
			return '_'
		}
		return r
	}, t.Name())
	return "t" + name[max(0, len(name)-40):] + strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
}

// rapidChecks sets how many random cases the test runs.
func rapidChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Set(before); err != nil {
			t.Error(err)
		}
	})
}

// Usage is there with the decision: the same script counts it.
func TestUsage(t *testing.T) {
	server := valkeytest.Start(t)
	storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore {
		s := onServer(t, server, nil)
		t.Cleanup(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return storetest.UsageStore{Store: s, Usage: s, Consume: func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
			t.Helper()
			storetest.Consume(t, s, at, bucket, amounts)
		}}
	})
}
