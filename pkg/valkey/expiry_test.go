package valkey_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// leftOfBuckets counts the buckets of a table, the members of the sets that lead to them, and the items
// that are to be looked at.
const leftOfBuckets = `
local T, n = ARGV[1], #redis.call('KEYS', ARGV[1] .. 'i:*/BUCKET#*')
for _, set in ipairs({ 'g2', 'g3', 'g4' }) do
  for _, key in ipairs(redis.call('KEYS', T .. set .. ':*')) do n = n + redis.call('ZCARD', key) end
end
for _, key in ipairs(redis.call('KEYS', T .. 'p:*/BUCKET#*')) do n = n + redis.call('ZCARD', key) end
return tostring(n + redis.call('ZCARD', T .. 'x'))
`

// Buckets that have expired are deleted with all that leads to them, also by a server without memory.
// What is no item does not stop that.
func TestExpiry(t *testing.T) {
	const buckets = 250
	server := valkeytest.Start(t)
	cfg := configOf(t, server, func(cfg *valkey.Config) { cfg.NoUsage = true }) // usage stays
	s, err := valkey.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	prefix := "{" + cfg.Name + "}:"
	corruptExpired(server, prefix)
	limits, err := limiter.NewLimits(limiter.PerSecond("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	for i := range buckets {
		op := limiter.Op{
			Bucket: limiter.BucketKey{Namespace: "ns", Entity: strconv.Itoa(i), Resource: "r"}, Limits: limits,
			Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
		}
		if admitted, err := s.Take(t.Context(), time.Now().Add(-10*time.Hour), []limiter.Op{op}); !admitted || err != nil {
			t.Fatalf("take: %t, %v", admitted, err)
		}
	}
	server.Must("CONFIG", "SET", "maxmemory", "1")
	if n := server.Must("EVAL", leftOfBuckets, "0", prefix); n == "0" {
		t.Fatal("there is nothing that expires")
	}
	for end := time.Now().Add(recovery); ; time.Sleep(20 * time.Millisecond) {
		n := server.Must("EVAL", leftOfBuckets, "0", prefix)
		if n == "0" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s keys and entries of buckets are left", n)
		}
	}
	server.Must("CONFIG", "SET", "maxmemory", "0")
	server.Must("DEL", prefix+"i:text", prefix+"i:half", prefix+"i:strange")
	checkConsistent(t, server, cfg.Name)
}

// corruptExpired puts what is no item among the items that expire.
func corruptExpired(server *valkeytest.Server, prefix string) {
	server.Must("SET", prefix+"i:text", "text")
	server.Must("HSET", prefix+"i:half", "ttl", "1")
	server.Must("HSET", prefix+"i:strange", "PK", "Sstrange", "SK", "S#STATE", "ttl", "Stext")
	for _, key := range []string{"text", "half", "strange", "none"} {
		server.Must("ZADD", prefix+"x", "1", key)
	}
}

// A snapshot of usage that a process knows to be there, and that has expired meanwhile, is made again as a whole.
func TestUsageThatHasExpired(t *testing.T) {
	server := valkeytest.Start(t)
	s := onServer(t, server, nil)
	defer func() { _ = s.Close(t.Context()) }()
	for range 2 {
		server.Must("EVAL", "for _, key in ipairs(redis.call('KEYS', '*#USAGE#*')) do redis.call('DEL', key) end return 'OK'", "0")
		if admitted, err := takeFrom(s, "e"); !admitted || err != nil {
			t.Fatalf("take: %t, %v", admitted, err)
		}
		page, err := s.ListUsage(t.Context(), "ns", limiter.UsageFilter{Entity: "e", Resource: "r", Window: limiter.UsageHour}, limiter.Page{})
		if err != nil || len(page.Items) != 1 || page.Items[0].Limits[0].Tokens != limiter.Milli {
			t.Errorf("ListUsage: %+v, %v, want one snapshot of one token", page.Items, err)
		}
	}
}
