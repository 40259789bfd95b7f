package limiter

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// SampledLog is a log of samples; a nil *SampledLog writes nothing. It is safe for concurrent use. Create it with [NewSampledLog].
type SampledLog struct {
	to    *slog.Logger
	kinds sync.Map // of *kind, by name
}

// kind counts the lines of a kind.
type kind struct {
	second     atomic.Int64 // of the last line, Unix time
	suppressed atomic.Int64 // lines that were left out since, but at the level debug
}

// NewSampledLog returns a log of samples that writes to a logger.
func NewSampledLog(to *slog.Logger) *SampledLog { return &SampledLog{to: to} }

// Write writes a line, unless there was one of its kind in the same second. The line says as suppressed
// how many of its kind were left out since the last one. Those of a higher level are written at the level debug. A kind is remembered for good: it is a
// constant, or one of a few, and never a part of a request.
func (l *SampledLog) Write(ctx context.Context, now time.Time, level slog.Level, of, message string, attrs ...slog.Attr) {
	if l == nil || !l.to.Enabled(ctx, level) {
		return
	}
	found, ok := l.kinds.Load(of)
	if !ok {
		found, _ = l.kinds.LoadOrStore(of, new(kind))
	}
	k := found.(*kind) //nolint:forcetypeassert // there are no others
	second, last := now.Unix(), k.second.Load()
	if second == last || !k.second.CompareAndSwap(last, second) {
		k.suppressed.Add(1)
		if level > slog.LevelDebug {
			l.to.LogAttrs(ctx, slog.LevelDebug, message, attrs...) //nolint:sloglint // the caller's message is a constant
		}
		return
	}
	l.to.LogAttrs(ctx, level, message, append(attrs, slog.Int64("suppressed", k.suppressed.Swap(0)))...) //nolint:sloglint // the caller's message is a constant
}
