package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Take implements limiter.Store.
func (k *taker) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	if ctx.Err() != nil {
		return false, contextErr(ctx)
	}
	return k.take(ctx, now.UnixMilli(), ops)
}

// take decides. With a file, a take beyond the blocks of its buckets waits until the file has newer
// ones. Until then nothing is changed.
func (k *taker) take(ctx context.Context, now int64, ops []limiter.Op) (bool, error) {
	for {
		var t try
		var err error
		if len(ops) == 1 {
			t, err = k.tryOne(now, &ops[0])
		}
		if len(ops) > 1 || t.none {
			t, err = k.tryAll(now, ops)
		}
		if err != nil {
			return t.admitted, err
		}
		if t.wait != nil {
			err = t.wait.wait(ctx)
		}
		if t.done { // also after an error of the file: the tokens are taken
			return t.admitted, k.chargeDeferred(ctx, now, ops, t.later)
		}
		if err == nil { // the caller may have gone in the meantime
			err = contextErr(ctx)
		}
		if err != nil {
			return false, err
		}
	}
}

// chargeDeferred applies the deferred ops, also for a caller that has gone.
func (k *taker) chargeDeferred(ctx context.Context, now int64, ops []limiter.Op, later []int) error {
	for _, i := range later {
		if _, err := k.take(context.WithoutCancel(ctx), now, ops[i:i+1]); err != nil {
			return fmt.Errorf("%w: a charge: %w", limiter.ErrUncertain, err)
		}
	}
	return nil
}
