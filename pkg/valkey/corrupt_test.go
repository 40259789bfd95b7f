package valkey_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// takeFrom takes one of 100 tokens of an entity.
func takeFrom(s *valkey.Store, entity string) (bool, error) {
	return takeOf(s, entity, 100, time.Now())
}

// takeOf takes one of some tokens of an entity at a time.
func takeOf(s *valkey.Store, entity string, tokens int64, at time.Time) (bool, error) {
	limits, err := limiter.NewLimits(limiter.PerHour("l", tokens))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadDeadline)
	defer cancel()
	return s.Take(ctx, at, []limiter.Op{{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: entity, Resource: "r"}, Limits: limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}})
}

// keyOfBucket returns the key of the one bucket of an entity.
func keyOfBucket(t *testing.T, server *valkeytest.Server, entity string) string {
	t.Helper()
	key := server.Must("EVAL", "return redis.call('KEYS', '*:i:*/BUCKET#' .. ARGV[1] .. '#*')[1] or ''", "0", entity)
	if key == "" {
		t.Fatalf("there is no bucket of %s", entity)
	}
	return key
}

// What is no bucket in the place of one makes that bucket alone fail, for good, and is logged.
func TestCorruptBucket(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(s *valkeytest.Server, key string){
		"text":             func(s *valkeytest.Server, key string) { s.Must("SET", key, "text") },
		"list":             func(s *valkeytest.Server, key string) { s.Must("DEL", key); s.Must("RPUSH", key, "text") },
		"missing field":    func(s *valkeytest.Server, key string) { s.Must("HDEL", key, "b_l_v") },
		"value of a text":  func(s *valkeytest.Server, key string) { s.Must("HSET", key, "n", "Stext") },
		"value of no type": func(s *valkeytest.Server, key string) { s.Must("HSET", key, "n", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lines
			p := newPair(t, func(cfg *valkey.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			for _, entity := range []string{"broken", "whole"} {
				if admitted, err := takeFrom(p.first, entity); !admitted || err != nil {
					t.Fatalf("take from %s: %t, %v", entity, admitted, err)
				}
			}
			key := keyOfBucket(t, p.server, "broken")
			corrupt(p.server, key)
			for range 3 {
				for _, s := range []*valkey.Store{p.first, p.second} {
					if admitted, err := takeFrom(s, "broken"); admitted || !errors.Is(err, limiter.ErrInvalid) {
						t.Errorf("take from what is no bucket: %t, %v, want an error of an invalid one", admitted, err)
					}
					if admitted, err := takeFrom(s, "whole"); !admitted || err != nil {
						t.Errorf("take from another bucket: %t, %v", admitted, err)
					}
				}
			}
			if got := log.String(); !strings.Contains(got, `the item of a bucket cannot be used`) || !strings.Contains(got, "BUCKET#broken#r#0") {
				t.Errorf("the log does not tell of the item:\n%s", got)
			}
		})
	}
}

// What the script cannot change beside a bucket changes no decision: usage that is no number, a set of entries that is none.
func TestCorruptBesideBucket(t *testing.T) {
	server := valkeytest.Start(t)
	for name, corrupt := range map[string]string{
		"usage of text":      `redis.call('HSET', KEYS[1], 'u_l', '12 000')`,
		"usage of a sign":    `redis.call('HSET', KEYS[1], 'u_l', '-')`,
		"usage of 19 digits": `redis.call('HSET', KEYS[1], 'u_l', '9223372036854775807')`,
		"list of usage":      `redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'text')`,
		"text of entries":    `redis.call('SET', KEYS[1]:match('^{.-}:') .. 'x', 'text')`,
	} {
		t.Run(name, func(t *testing.T) {
			server.Must("FLUSHALL")
			s := onServer(t, server, nil)
			defer func() { _ = s.Close(t.Context()) }()
			if admitted, err := takeFrom(s, "old"); !admitted || err != nil {
				t.Fatalf("the first take: %t, %v", admitted, err)
			}
			usage := server.Must("EVAL", "return redis.call('KEYS', '*#USAGE#*hour*')[1]", "0")
			server.Must("EVAL", corrupt, "1", usage)
			for _, entity := range []string{"old", "new"} {
				if admitted, err := takeFrom(s, entity); !admitted || err != nil {
					t.Errorf("a take from %s: %t, %v", entity, admitted, err)
				}
			}
		})
	}
}
