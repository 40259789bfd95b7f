package rls

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// maxUnmatched is the most unknown domains, and the most sets of keys, that the log names in
	// unmatchedAgain.
	maxUnmatched = 100
	// unmatchedAgain is the time after which a name may be logged again.
	unmatchedAgain = time.Hour
	// unmatchedPause is the least time between two lines of a kind.
	unmatchedPause = time.Second
	// unmatchedSlots is the number of names of a kind that are remembered; a power of two.
	unmatchedSlots = 256
	// maxNamed bounds the names in a line.
	maxNamed = 16
)

// unmatchedLog warns of descriptors that no rule matches. These are likely mistakes of a
// configuration, and have no other sign. It names each unknown domain and each set of keys once in
// an hour, and never logs values of descriptors. No client can fill the memory or the log: the
// names, and the lines in a second and in an hour, are bounded. Clients can make up sets of keys,
// but these hide no unknown domain.
type unmatchedLog struct {
	logger *slog.Logger
	seed   maphash.Seed

	domains, keys unmatchedKind
}

// unmatchedKind is the state of one kind of lines.
type unmatchedKind struct {
	seen [unmatchedSlots]atomic.Uint64 // hashes of logged names, by their low bits
	next atomic.Int64                  // Unix milliseconds; no line before

	mu     sync.Mutex
	hour   int64 // the current hour since 1970
	logged int   // lines in it
}

func newUnmatchedLog(logger *slog.Logger) *unmatchedLog {
	return &unmatchedLog{logger: logger, seed: maphash.MakeSeed()}
}

// warn logs the descriptors of a call that no rule matches.
func (l *unmatchedLog) warn(ctx context.Context, now time.Time, c *call, rules *descriptor.Rules) {
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Kind != descriptor.Unmatched || ofLimits(&c.plan) { // no limit need apply to a call
			continue
		}
		entries, kind := c.in.Descriptors[i].Entries, &l.keys
		if c.plan.Domain == nil {
			entries, kind = nil, &l.domains // the domain alone says enough
		}
		hour := now.UnixMilli() / unmatchedAgain.Milliseconds()
		if kind.due(now.UnixMilli(), l.hash(hour, c.in.Domain, entries)) {
			l.log(ctx, kind.line(hour), c, rules, entries, c.unmatchedDenied(o))
		}
		if c.plan.Domain == nil {
			return
		}
	}
}

// hash identifies a domain and a list of keys in an hour.
func (l *unmatchedLog) hash(hour int64, domain string, entries []descriptor.Entry) uint64 {
	hash := maphash.String(l.seed, cut(domain)) ^ maphash.Comparable(l.seed, hour)
	for i := range entries[:min(len(entries), maxNamed)] {
		hash = hash*0x9e3779b97f4a7c15 + maphash.String(l.seed, cut(entries[i].Key))
	}
	return max(hash, 1)
}

// due reports whether to write a line, and reserves its time. It costs a load of one word if the
// names were logged before.
func (k *unmatchedKind) due(now int64, hash uint64) bool {
	slot := &k.seen[hash%unmatchedSlots]
	if slot.Load() == hash {
		return false
	}
	next := k.next.Load()
	if now < next && next-now <= unmatchedPause.Milliseconds() || !k.next.CompareAndSwap(next, now+unmatchedPause.Milliseconds()) {
		return false
	}
	slot.Store(hash)
	return true
}

// line returns the number of the line in its hour, from 1.
func (k *unmatchedKind) line(hour int64) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if hour != k.hour {
		k.hour, k.logged = hour, 0
	}
	k.logged = min(k.logged+1, maxUnmatched+2)
	return k.logged
}

func (l *unmatchedLog) log(ctx context.Context, line int, c *call, rules *descriptor.Rules, entries []descriptor.Entry, denied bool) {
	answer := "admitted"
	if denied {
		answer = "denied"
	}
	attrs := []slog.Attr{slog.String("domain", shown(c.in.Domain)), slog.String("answer", answer)}
	switch {
	case line == maxUnmatched+1 && c.plan.Domain == nil:
		l.logger.LogAttrs(ctx, slog.LevelWarn, "many domains are unknown; no more are named for an hour")
	case line == maxUnmatched+1:
		l.logger.LogAttrs(ctx, slog.LevelWarn, "many different descriptors match no rule; no more are named for an hour")
	case line > maxUnmatched:
	case c.plan.Domain == nil:
		names := make([]string, 0, len(rules.Domains()))
		for _, d := range rules.Domains() {
			names = append(names, d.Name())
		}
		if near := limiter.ClosestName(cut(c.in.Domain), names); near != "" {
			attrs = append(attrs, slog.String("did_you_mean", shown(near)))
		}
		attrs = append(attrs, slog.Any("domains", names[:min(len(names), maxNamed)]))
		l.logger.LogAttrs(ctx, slog.LevelWarn, "unknown domain: no configuration file has it", attrs...)
	default:
		keys := make([]string, 0, maxNamed)
		for _, e := range entries[:min(len(entries), maxNamed)] {
			keys = append(keys, shown(e.Key))
		}
		attrs = append(attrs, slog.Any("keys", keys))
		l.logger.LogAttrs(ctx, slog.LevelWarn, "no rule matches a descriptor; `ratelimit explain` shows the nearest", attrs...)
	}
}
