package reservation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Defaults of [LedgerConfig].
const (
	DefaultMaxKept = 100_000
	DefaultBudget  = 90 * time.Second
	DefaultWait    = 250 * time.Millisecond
)

// LedgerConfig configures a [Ledger]. Only Limiter is required.
type LedgerConfig struct {
	// Limiter decides and applies charges. The ledger does not close it.
	Limiter *limiter.Limiter
	// Local reports that the store is memory of this process. Its calls never wait, so a charge
	// that it does not apply is tried again later.
	Local bool
	// MaxKept is the most charges in the queue while the store does not answer. More are lost, and
	// counted. 0 = DefaultMaxKept.
	MaxKept int
	// Wait is how long a call waits for its charge. A charge that takes longer continues, and the
	// call is answered that it is queued; 0 = DefaultWait.
	Wait time.Duration
	// Budget is how long the store may take for one charge before it counts as not answered; 0 =
	// DefaultBudget. It is long because no call waits for it. With a longer budget fewer outcomes
	// are unknown.
	Budget time.Duration
	// Now is the clock of queued charges; nil = time.Now.
	Now func() time.Time
	// Logger logs losses; nil = no log.
	Logger *slog.Logger
}

// Ledger decides like its limiter, and ensures that usage is charged. It is safe for concurrent
// use. Create it with [NewLedger], end it with [Ledger.Close].
type Ledger struct {
	cfg   LedgerConfig
	queue *queue
}

// NewLedger returns a ledger, which has one goroutine until it is closed. It fails with
// limiter.ErrInvalid without a limiter.
func NewLedger(cfg LedgerConfig) (*Ledger, error) {
	if cfg.Limiter == nil {
		return nil, fmt.Errorf("%w: a ledger needs a limiter", limiter.ErrInvalid)
	}
	cfg.MaxKept = cmp.Or(max(cfg.MaxKept, 0), DefaultMaxKept)
	cfg.Budget = cmp.Or(max(cfg.Budget, 0), DefaultBudget)
	cfg.Wait = cmp.Or(max(cfg.Wait, 0), DefaultWait)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Ledger{cfg: cfg, queue: newQueue(cfg.MaxKept, cfg.Budget, cfg.Now, cfg.Logger)}, nil
}

// LedgerStats are counts since the start, except Kept.
type LedgerStats struct {
	Kept      int   // charges in the queue now
	Booked    int64 // charges applied from the queue
	Lost      int64 // charges dropped: the queue was full, the store refused them, or the process ended
	Uncertain int64 // charges of unknown outcome
}

// Stats returns the counts.
func (l *Ledger) Stats() LedgerStats { return l.queue.stats() }

// Close accepts no more charges, waits for those under way and applies the queue until ctx is done.
// Its error reports the number that is lost. Call it after the last call, before the store is
// closed.
func (l *Ledger) Close(ctx context.Context) error { return l.queue.close(ctx) }

// Decide decides like limiter.Limiter.Decide. A request of charges and refunds alone waits for
// Config.Wait at most, also when ctx ends. If the store has not answered by then the request is
// queued, and d.Kept is true.
func (l *Ledger) Decide(ctx context.Context, now time.Time, req *limiter.Request, d *limiter.Decision) error {
	if !l.cfg.Local && len(req.Takes) > 0 && !slices.ContainsFunc(req.Takes, consumes) {
		return l.charge(now, req, d) //nolint:contextcheck // it may outlive the call
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

// unanswered queues the charges and refunds of a request that a policy decided in place of the
// store.
func (l *Ledger) unanswered(req *limiter.Request, d *limiter.Decision) {
	charges := chargesOf(req)
	if len(charges.Takes) == 0 {
		return
	}
	if errors.Is(d.Unavailable, limiter.ErrUncertain) { // rule: a charge of unknown outcome is not queued
		l.queue.uncertain.Add(1)
		return
	}
	d.Kept = l.queue.add(l.again(charges))
}

// charge applies a request of charges and refunds alone.
func (l *Ledger) charge(now time.Time, req *limiter.Request, d *limiter.Decision) error {
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

// again applies a request from the queue.
func (l *Ledger) again(used *limiter.Request) charge {
	return func(ctx context.Context) error {
		return l.cfg.Limiter.Book(ctx, l.cfg.Now(), used, new(limiter.Decision))
	}
}

// chargesOf returns a copy of the charges and refunds of a request, which shares no memory with the
// message of the request.
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

// Settlement is a reservation, and the actual use.
type Settlement struct {
	Mark     limiter.Mark
	Holdings []limiter.Holding
	Used     []limiter.Consumption
}

// Outcome is the outcome of a settlement.
type Outcome uint8

// The outcomes.
const (
	Settled   Outcome = iota // it was applied
	Repeated                 // another settlement came first
	Kept                     // it is queued, and applied when the store answers again, unless another comes first
	Uncertain                // its outcome is unknown, and it is not repeated
	Lost                     // it is lost: the queue is full
)

// Settle settles a reservation, see limiter.Limiter.Settle. It waits for Config.Wait at most, also
// when the caller's context ends. It owns s from then on. An error is limiter.ErrInvalid or
// limiter.ErrClosed.
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

// settle settles a reservation once. A mark may be written again by its owner, so only a charge
// that may have been applied is uncertain.
func (l *Ledger) settle(ctx context.Context, now time.Time, s Settlement) (won bool, err error) {
	won, err = l.cfg.Limiter.Settle(ctx, now, s.Mark, s.Holdings, s.Used)
	if errors.Is(err, limiter.ErrUncertain) && !won { // rule: a charge after a won mark is not repeated
		err = fmt.Errorf("%w: marking the reservation: %v", limiter.ErrUnavailable, err) //nolint:errorlint // it is to be tried again
	}
	return won, err
}

// settleLater settles a reservation from the queue.
func (l *Ledger) settleLater(ctx context.Context, s Settlement) error {
	won, err := l.settle(ctx, l.cfg.Now(), s)
	if err == nil && !won && !l.cfg.Now().Before(s.Mark.Expires) {
		return errors.New("the reservation expired while the store did not answer; the estimate stays charged")
	}
	return err
}
