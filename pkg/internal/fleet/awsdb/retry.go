package awsdb

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// maxReadTries bounds the tries of a request that DynamoDB throttles or does in
	// part, for callers whose context has no deadline: about 2 s.
	maxReadTries = 12
	firstBackoff = 4 * time.Millisecond
	maxBackoff   = 400 * time.Millisecond
)

// Retryable reports whether an error of the SDK says that the call was not applied
// and the same call may succeed soon: a throttle, or a transaction under way on the
// item.
func Retryable(err error) bool {
	c := classOf(err)
	return c == throttled || c == contended
}

// Passes reports whether a read that ended in an error is worth another try within the
// time of a decision: not in an outage, nor while something has to be mended first.
func Passes(err error) bool {
	return MayPass(err) && !errors.Is(err, ErrOutage) && !IsRefused(err)
}

// IsRefused reports whether an error of the SDK says that DynamoDB refuses all such calls
// until credentials, the table or the endpoint are mended.
func IsRefused(err error) bool { return classOf(err) == refused }

// RetryRead waits and returns true if a request that may be repeated should be sent again
// after the error; try counts the tries. It returns false in an outage, in which a decision
// would wait in vain.
func RetryRead(ctx context.Context, by Loop, try *int, err error) bool {
	return Retry(ctx, by, try, Passes(err))
}

// Retry waits and returns true if a request is worth another try and the context allows it.
// try counts the tries.
func Retry(ctx context.Context, by Loop, try *int, worth bool) bool {
	*try++
	if *try >= maxReadTries || !worth {
		return false
	}
	return Pause(ctx, by, *try) == nil
}

// MayPass reports whether the same request may succeed later.
func MayPass(err error) bool {
	return errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain)
}

// Pause waits before a try, longer each time, with a random part, unless the context
// would be done before it ends.
func Pause(ctx context.Context, by Loop, try int) error {
	d := min(firstBackoff<<min(try-1, 10), maxBackoff)
	return by.Sleep(ctx, d/2+time.Duration(by.Draw(int64(d/2))))
}
