package rls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// denialLog logs denials at a bounded rate.
type denialLog struct {
	logger *slog.Logger
	used   atomic.Uint64 // Unix seconds in the upper half, and lines in that second
	quiet  atomic.Int64  // denials without a line since the last one
}

// log writes a line about a denied call, with its tightest limit.
func (l *denialLog) log(ctx context.Context, now time.Time, c *call) {
	if c.options.Denials.PerSecond <= 0 || !c.verdict.denied {
		return
	}
	if !l.take(now, c.options.Denials.PerSecond) {
		l.quiet.Add(1)
		return
	}
	attrs := append(make([]slog.Attr, 0, 10), slog.String("domain", shown(c.in.Domain)), slog.String("reason", c.verdict.reason))
	switch s := c.denier(); {
	case s != nil:
		attrs = appendRuleName(attrs, c.ruleOf(s.Take))
		attrs = c.appendBucket(attrs, s.Entity, s.Resource, s.Limit.Name)
		attrs = append(attrs, slog.Int64("requested", s.Requested/limiter.Milli), slog.Int64("remaining", wholeTokens(s.Available)))
		if seconds := c.retryAfter(); seconds > 0 {
			attrs = append(attrs, slog.Int64("retry_after", seconds))
		}
	case c.decision.Reason == limiter.ReasonNotConfigured:
		t := &c.plan.Request.Takes[c.decision.MissingTake]
		attrs = appendRuleName(attrs, c.ruleOf(c.decision.MissingTake))
		attrs = c.appendBucket(attrs, t.Entity, t.Resource, c.decision.MissingLimit)
	default:
		attrs = appendRuleName(attrs, c.firstOver())
	}
	attrs = append(attrs, slog.Int64("suppressed", l.quiet.Swap(0)))
	l.logger.LogAttrs(ctx, slog.LevelInfo, "request denied", attrs...)
}

// take reports whether one more line is allowed in the second of now.
func (l *denialLog) take(now time.Time, most int) bool {
	for {
		old := l.used.Load()
		second, lines := old>>32, old&math.MaxUint32
		if at := uint64(max(now.Unix(), 0)); at != second { // #nosec G115 -- 0 or above
			second, lines = at, 0
		}
		if lines >= uint64(most) { // #nosec G115 -- above 0
			return false
		}
		if l.used.CompareAndSwap(old, second<<32|lines+1) {
			return true
		}
	}
}

func appendRuleName(attrs []slog.Attr, rule *descriptor.Rule) []slog.Attr {
	if rule == nil {
		return attrs
	}
	return append(attrs, slog.String("rule", rule.Name()))
}

func (c *call) appendBucket(attrs []slog.Attr, entity, resource, limit string) []slog.Attr {
	if !c.options.Denials.WholeEntity {
		entity = masked(entity)
	}
	return append(attrs, slog.String("entity", shown(entity)), slog.String("resource", shown(resource)), slog.String("limit", limit))
}

const (
	longestKind = 16 // bytes of the kind at the start of an entity, such as key/
	shownWhole  = 8  // bytes of a name that is logged whole
	shownBegin  = 4  // bytes of a longer name that are logged
)

// masked returns an entity without the end of its name: key/sk-a...5fb1a2c3.
func masked(entity string) string {
	kind := strings.IndexByte(entity, '/') + 1
	if kind > longestKind {
		kind = 0
	}
	if len(entity)-kind <= shownWhole {
		return entity
	}
	sum := sha256.Sum256([]byte(entity))
	return entity[:kind+shownBegin] + "..." + hex.EncodeToString(sum[:4])
}
