// Package ledger books what was used: charges, refunds and settlements, which come
// when the work is done. Nobody can take the work back then, so what was used is
// never lost for want of tokens, nor because the store does not answer at the
// moment: it is kept, and booked when the store answers again.
//
// What may have been booked already is not booked again: a store that lost a reply
// and cannot find out says so ([limiter.ErrUncertain]), and using twice what was
// used once would deny those who have done nothing.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Defaults of [Config].
const (
	DefaultMaxKept = 100_000
	DefaultBudget  = 90 * time.Second
	DefaultWait    = 250 * time.Millisecond
)

// Config configures a [Ledger]. Only Limiter is required.
type Config struct {
	// Limiter decides and books. The ledger does not close it.
	Limiter *limiter.Limiter
	// Local says that the store is memory of this process: it never waits, so what
	// it does not book at once it is asked again later.
	Local bool
	// MaxKept is the most bookings that are kept while the store does not answer;
	// what comes on top is lost, and counted. 0 = DefaultMaxKept.
	MaxKept int
	// Wait is how long a call waits for its charge. One that takes longer goes on, and
	// the call is told that it is kept; 0 = DefaultWait.
	Wait time.Duration
	// Budget is how long the store may take for one charge, until it counts as not
	// answered; 0 = DefaultBudget. It is long, as no call waits for the answer, and
	// the longer, the fewer stay uncertain.
	Budget time.Duration
	// Now is the clock of what is booked later; nil = time.Now.
	Now func() time.Time
	// Logger is told of what was lost; nil = nobody.
	Logger *slog.Logger
}

// Ledger decides like its limiter, and sees to it that what was used is booked. It
// is safe for concurrent use. Create it with [New], end it with [Ledger.Close].
type Ledger struct {
	cfg   Config
	queue *queue
}

// New returns a ledger, which has one goroutine until it is closed. It fails with
// limiter.ErrInvalid without a limiter.
func New(cfg Config) (*Ledger, error) {
	if cfg.Limiter == nil {
		return nil, fmt.Errorf("%w: a ledger needs a limiter", limiter.ErrInvalid)
	}
	if cfg.MaxKept <= 0 {
		cfg.MaxKept = DefaultMaxKept
	}
	if cfg.Budget <= 0 {
		cfg.Budget = DefaultBudget
	}
	if cfg.Wait <= 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Ledger{cfg: cfg, queue: newQueue(cfg.MaxKept, cfg.Budget, cfg.Now, cfg.Logger)}, nil
}

// Stats are counts since the start, but for Kept.
type Stats struct {
	Kept      int   // bookings that wait for the store now
	Booked    int64 // that were booked after they had waited
	Lost      int64 // that were dropped: too many waited, or the process ended
	Uncertain int64 // of which nobody knows whether they were booked
}

// Stats returns the counts.
func (l *Ledger) Stats() Stats { return l.queue.stats() }

// Close stops keeping what comes, waits for what is being booked and books what is
// kept until ctx is done, and reports what is lost then. Call it when no call comes
// any more, before the store is closed.
func (l *Ledger) Close(ctx context.Context) error { return l.queue.close(ctx) }

// Decide decides like limiter.Limiter.Decide. A request of charges and refunds alone
// waits for Config.Wait at most, also when ctx ends. Where the store does not
// answer by then the amount is kept, and d.Kept says so.
func (l *Ledger) Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
	if !l.cfg.Local && len(req.Takes) > 0 && !slices.ContainsFunc(req.Takes, consumes) {
		return l.book(now, req, d) //nolint:contextcheck // it may outlive the call
	}
	if err := l.cfg.Limiter.Decide(ctx, now, req, d); err != nil {
		return err
	}
	if d.Policy != limiter.Unset {
		l.unanswered(req, d)
	}
	return nil
}

func consumes(t limiter.Take) bool { return t.Mode == limiter.Consume }

// unanswered keeps what a decided request was to book, when a policy answered in the
// place of the store.
func (l *Ledger) unanswered(req *limiter.Request, d *limiter.Decision) {
	charges := chargesOf(req)
	if len(charges.Takes) == 0 {
		return
	}
	if errors.Is(d.Unavailable, limiter.ErrUncertain) {
		l.queue.uncertain.Add(1)
		return
	}
	d.Kept = l.queue.add(l.again(charges))
}

// book books a request that asks for nothing.
func (l *Ledger) book(now time.Time, req *limiter.Request, d *limiter.Decision) error {
	used, answer := chargesOf(req), new(limiter.Decision)
	again := l.again(used)
	err := l.queue.attempt(l.cfg.Wait, func(ctx context.Context) error { return l.cfg.Limiter.Book(ctx, now, used, answer) }, again)
	if err == nil {
		*d = *answer
		return nil
	}
	*d = limiter.Decision{Admitted: true, Policy: limiter.Allow, Unavailable: err}
	switch {
	case errors.Is(err, errLate):
		d.Kept = true
	case errors.Is(err, errLost):
	case errors.Is(err, limiter.ErrUncertain):
		l.queue.uncertain.Add(1)
	case errors.Is(err, limiter.ErrUnavailable):
		d.Kept = l.queue.add(again)
	default:
		return err
	}
	return nil
}

// again books a request that was kept.
func (l *Ledger) again(used *limiter.Request) charge {
	return func(ctx context.Context) error {
		return l.cfg.Limiter.Book(ctx, l.cfg.Now(), used, new(limiter.Decision))
	}
}

// bookings returns a copy of the charges and refunds of a request, which shares no
// memory with the message that it came in.
func chargesOf(req *limiter.Request) *limiter.Request {
	out := *req
	out.Namespace, out.Takes = strings.Clone(req.Namespace), nil
	for _, t := range req.Takes {
		if consumes(t) {
			continue
		}
		t.Entity, t.Resource, t.Label = strings.Clone(t.Entity), strings.Clone(t.Resource), strings.Clone(t.Label)
		t.Parents, t.Consume = slices.Clone(t.Parents), slices.Clone(t.Consume)
		for i := range t.Parents {
			t.Parents[i] = strings.Clone(t.Parents[i])
		}
		out.Takes = append(out.Takes, t)
	}
	return &out
}

// Settlement is a reservation, and what was used of it.
type Settlement struct {
	Mark     limiter.Mark
	Holdings []limiter.Holding
	Used     []limiter.Consumption
}

// Outcome says what became of a settlement.
type Outcome uint8

// The outcomes.
const (
	Settled   Outcome = iota // it was booked
	Repeated                 // somebody else has settled the reservation
	Kept                     // it will be settled when the store answers again, unless somebody else was first
	Uncertain                // nobody knows whether it was booked; it is not booked again
	Lost                     // it could not be kept: too many are
)

// Settle settles a reservation, see limiter.Limiter.Settle. It waits for Config.Wait at
// most, also when the caller's context ends. It must own s, which it may keep. An
// error is limiter.ErrInvalid or limiter.ErrClosed.
func (l *Ledger) Settle(ctx context.Context, now time.Time, s Settlement) (Outcome, error) {
	var won bool
	first := func(ctx context.Context) (err error) {
		won, err = l.settle(ctx, now, s)
		return err
	}
	again := func(ctx context.Context) error { return l.settleLater(ctx, s) }
	var err error
	if l.cfg.Local { // it never waits
		err = first(ctx)
	} else {
		err = l.queue.attempt(l.cfg.Wait, first, again) //nolint:contextcheck // it may outlive the call
	}
	switch {
	case errors.Is(err, errLate):
		return Kept, nil
	case errors.Is(err, errLost):
		return Lost, nil
	case err == nil && won:
		return Settled, nil
	case err == nil:
		return Repeated, nil
	case errors.Is(err, limiter.ErrUncertain):
		l.queue.uncertain.Add(1)
		return Uncertain, nil
	case errors.Is(err, limiter.ErrUnavailable):
		if !l.queue.add(again) {
			return Lost, nil
		}
		return Kept, nil
	default:
		return Lost, err
	}
}

// settle settles a reservation once. A mark may be written again by its owner, so only
// a charge that may have been applied is uncertain.
func (l *Ledger) settle(ctx context.Context, now time.Time, s Settlement) (won bool, err error) {
	won, err = l.cfg.Limiter.Settle(ctx, now, s.Mark, s.Holdings, s.Used)
	if errors.Is(err, limiter.ErrUncertain) && !won {
		err = fmt.Errorf("%w: marking the reservation: %v", limiter.ErrUnavailable, err) //nolint:errorlint // it is to be tried again
	}
	return won, err
}

// settleLater settles a reservation that was kept.
func (l *Ledger) settleLater(ctx context.Context, s Settlement) error {
	won, err := l.settle(ctx, l.cfg.Now(), s)
	if err == nil && !won && !l.cfg.Now().Before(s.Mark.Expires) {
		return errors.New("the reservation expired while the store did not answer; the estimate stays charged")
	}
	return err
}
