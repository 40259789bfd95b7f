package limiter

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of a decision. It ends with that of the caller, at a time, or with the
// decision. It has a timer only once something waits for it: a decision from memory waits for nothing.
type deadline struct {
	caller context.Context //nolint:containedctx // it is a context
	at     time.Time

	mu     sync.Mutex
	over   bool            // the decision
	timed  context.Context //nolint:containedctx // with a timer; nil = nothing waits so far
	cancel context.CancelFunc
}

// within returns the context of a decision that may take so long. Its end must be called.
func within(caller context.Context, timeout time.Duration) *deadline {
	at := time.Now().Add(timeout)
	if earlier, ok := caller.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	return &deadline{caller: caller, at: at}
}

// end ends the context with the decision.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.cancel != nil {
		d.cancel()
	}
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done starts the timer.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.caller, d.at)
		if d.over {
			d.cancel()
		}
	}
	return d.timed.Done()
}

func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed != nil {
		return d.timed.Err()
	}
	err := d.caller.Err()
	switch {
	case err != nil:
		return err
	case d.over:
		return context.Canceled
	case !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the context with the timer, if there is one: contexts made from this one find it so.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	of := d.caller
	if d.timed != nil {
		of = d.timed
	}
	d.mu.Unlock()
	return of.Value(key)
}
