package awsdb

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/smithy-go"
)

// wrongReplyEvery is the least time between two lines on wrong replies in the log.
const wrongReplyEvery = time.Second

// wrongReplies counts the replies that DynamoDB never gives, and logs a sample of them: such a
// reply is no outcome, and many of them in a row are an outage.
type wrongReplies struct {
	mu         sync.Mutex
	seen       int64
	logged     time.Time
	suppressed int64
}

// saw takes in the end of a call.
func (w *wrongReplies) saw(ctx context.Context, logger *slog.Logger, err error, now time.Time) {
	if err == nil || !isWrongReply(err) {
		return
	}
	suppressed, due := w.count(now)
	if due && logger != nil {
		logger.LogAttrs(ctx, slog.LevelError, "a reply of the store is none to its call, and does not count", slog.Int64("suppressed", suppressed), slog.Any("error", err))
	}
}

// count counts a reply, and reports whether a line is due, with how many had none since the last.
func (w *wrongReplies) count(now time.Time) (suppressed int64, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if !w.logged.IsZero() && now.Sub(w.logged).Abs() < wrongReplyEvery {
		w.suppressed++
		return 0, false
	}
	suppressed, w.logged, w.suppressed = w.suppressed, now, 0
	return suppressed, true
}

// total returns how many replies there were.
func (w *wrongReplies) total() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// isWrongReply reports whether a call ended in a reply that DynamoDB never gives to it: it is that
// to another call, lacks a part, cannot be read, or is of something on the way.
func isWrongReply(err error) bool {
	if errors.Is(err, errOther) || errors.Is(err, errIncomplete) {
		return true
	}
	if _, ok := errors.AsType[*strangerError](err); ok {
		return true
	}
	_, ok := errors.AsType[*smithy.DeserializationError](err)
	return ok
}
