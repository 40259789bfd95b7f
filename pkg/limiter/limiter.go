package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Defaults of [Config].
const (
	DefaultTimeout       = 15 * time.Millisecond // below the 20 ms that Envoy waits
	DefaultCacheTTL      = 60 * time.Second
	DefaultCacheSize     = 100_000
	DefaultDenyCacheSize = 100_000
)

// Config configures a [Limiter]. Only Store is required.
type Config struct {
	// Store keeps the buckets. The limiter does not close it.
	Store Store
	// Fallback decides for the policy Local while Store does not answer. It should be
	// memory of this process, and of no other limiter; nil = a decision by Local denies.
	Fallback Store
	// Timeout is how long one decision waits for a store that is not local; 0 =
	// DefaultTimeout. The store's own attempt goes on after it. A store that makes no late
	// decisions is unavailable then.
	Timeout time.Duration
	// CacheTTL is how long records of a store that is not local are believed, also
	// that there is none; 0 = DefaultCacheTTL, below 0 = no cache. Changes that the
	// store tells of count at once.
	CacheTTL time.Duration
	// CacheSize is the most records cached; 0 = DefaultCacheSize.
	CacheSize int
	// DenyCacheSize is the most denials remembered; 0 = DefaultDenyCacheSize, below 0 = none.
	DenyCacheSize int
}

// Limiter decides requests. It is safe for concurrent use. Create it with [New].
type Limiter struct {
	store    Store
	local    bool // the store is memory of this process
	bare     bare // nil where the store is not local, or cannot say
	fallback Store
	timeout  time.Duration
	use      sync.Mutex    // held while the snapshot is replaced
	uses     atomic.Uint64 // how often it was
	snapshot atomic.Pointer[Snapshot]
	cache    *recordCache // nil for a local store
	reads    *reads       // nil for a local store
	denials  *denyCache   // nil for a local store
	shares   *shareCache
}

// New returns a limiter over a store. It fails with [ErrInvalid] when there is none.
func New(cfg Config) (*Limiter, error) {
	if cfg.Store == nil {
		return nil, fmt.Errorf("%w: a limiter needs a store", ErrInvalid)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	l := &Limiter{
		store:    cfg.Store,
		local:    cfg.Store.Capabilities().Local,
		fallback: cfg.Fallback,
		timeout:  cfg.Timeout,
		shares:   newShareCache(),
	}
	l.snapshot.Store(new(Snapshot))
	if l.local {
		l.bare, _ = cfg.Store.(bare)
	} else {
		l.cache = newRecordCache(cfg.CacheTTL, cfg.CacheSize)
		l.reads = newReads(cfg.Store, l.cache)
		l.denials = newDenyCache(cfg.DenyCacheSize, cfg.Timeout)
		l.store.Subscribe(l.cache.changed)
	}
	return l, nil
}

// CacheStats reports on the cache of records. It is zero for a local store,
// whose records are not cached.
func (l *Limiter) CacheStats() CacheStats {
	if l.cache == nil {
		return CacheStats{}
	}
	return l.cache.stats()
}

// InvalidateCache forgets every cached record and denial, and every read under way.
func (l *Limiter) InvalidateCache() {
	if l.cache != nil {
		l.reads.forget()
		l.cache.purge()
	}
	if l.denials != nil {
		l.denials.purge()
	}
}

// Close ends the reads of the limiter in the background, and waits for them: call it
// before the store is closed. A decision that has to read then fails with [ErrClosed]. A limiter
// that is not closed reads nothing for longer than a second after its last call.
func (l *Limiter) Close() {
	if l.reads != nil {
		l.reads.close()
	}
}

// Decide decides a request at now and writes the answer to d. When the store does not
// answer within the budget the decision is late: by the limits and balances that this
// process last saw. When the store is unavailable the request's policy decides. d tells
// both apart from a decision of the store. A caller that cancels ctx is answered by the
// policy. An error means that there is no decision: [ErrInvalid] for an amount out of
// range, [ErrClosed] after the store was closed.
func (l *Limiter) Decide(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	d.reset()
	if err := req.validate(); err != nil {
		return err
	}
	if l.local {
		return l.decide(ctx, now, req, d)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.decide(ctx, now, req, d)
}

// decide is Decide of a valid request, within the time that ctx has.
func (l *Limiter) decide(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	if err := l.resolve(ctx, now, req, d); err != nil {
		return l.unresolved(ctx, now, req, d, err)
	}
	d.Late = d.scratch.late
	if d.Reason != ReasonNone {
		return l.bookOnly(ctx, now, req, d)
	}
	if len(d.scratch.ops) == 0 {
		d.Admitted = true
		return nil
	}
	if l.denials != nil && !req.Whole && l.denials.deny(now, d.scratch.ops) {
		d.fill(now, req, false)
		return nil
	}
	if !l.local {
		l.sayWhoDecides(req, d)
	}
	admitted, err := l.store.Take(ctx, now, d.scratch.ops)
	if err != nil {
		return l.unanswered(ctx, now, req, d, err)
	}
	l.learn(now, d.scratch.ops)
	d.fill(now, req, admitted)
	return nil
}

// sayWhoDecides settles which policy decides if the store does not, and tells the store
// whether tokens that it takes all the same stay taken.
func (l *Limiter) sayWhoDecides(req *Request, d *Decision) {
	d.scratch.decides = l.policy(req, d)
	for i := range d.scratch.ops {
		d.scratch.ops[i].KeepTaken = d.scratch.decides == Allow
	}
}

// learn remembers what the store said of ops, for the next request.
func (l *Limiter) learn(now time.Time, ops []Op) {
	if l.denials != nil {
		l.denials.learn(now, ops)
	}
}

// bookOnly is for a request that is denied before the store is asked, as it is
// when a limit is configured nowhere: its charges and refunds are booked all the same.
func (l *Limiter) bookOnly(ctx context.Context, now time.Time, req *Request, d *Decision) error {
	ops := d.scratch.ops[:0]
	for _, op := range d.scratch.ops {
		spends := op.Spends[:0]
		for _, sp := range op.Spends {
			if sp.Take, sp.Look = 0, false; sp.Charge > 0 || sp.Refund > 0 {
				spends = append(spends, sp)
			}
		}
		if op.Spends = spends; len(spends) > 0 {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if _, err := l.store.Take(ctx, now, ops); err != nil {
		reason, take, limit := d.Reason, d.MissingTake, d.MissingLimit
		err = l.unanswered(ctx, now, req, d, err)
		d.Admitted, d.Reason, d.MissingTake, d.MissingLimit = false, reason, take, limit
		return err
	}
	l.learn(now, ops)
	return nil
}

// unanswered decides by policy when the store is unavailable. The outage is the store's
// to tell, by its error.
func (l *Limiter) unanswered(ctx context.Context, now time.Time, req *Request, d *Decision, cause error) error {
	if !errors.Is(cause, ErrUnavailable) && !errors.Is(cause, ErrUncertain) {
		return cause // closed or invalid: never a reason to admit
	}
	d.Late, d.Policy, d.Unavailable = false, d.scratch.decides, cause
	if d.Policy == Unset {
		d.Policy = l.policy(req, d)
	}
	switch d.Policy {
	case Allow:
		d.Admitted, d.Reason = true, ReasonNone
	case Local:
		l.decideLocally(context.WithoutCancel(ctx), now, req, d)
	case Deny, Unset:
		d.Admitted, d.Reason = false, ReasonUnavailable
	}
	return nil
}

// unresolved decides by policy when records could not be read. A request that takes from a
// subject last seen as disabled is denied by any policy.
func (l *Limiter) unresolved(ctx context.Context, now time.Time, req *Request, d *Decision, cause error) error {
	err := l.unanswered(ctx, now, req, d, cause)
	if err != nil || d.Policy != Allow || l.cache == nil {
		return err
	}
	policy, unavailable := d.Policy, d.Unavailable
	d.reset()
	d.scratch.offline = true
	err = l.resolve(ctx, now, req, d)
	disabled := err == nil && d.Reason == ReasonDisabled
	d.Admitted, d.Policy, d.Unavailable = !disabled, policy, unavailable
	if !disabled {
		d.Reason, d.MissingLimit = ReasonNone, ""
	}
	return nil
}

// validate refuses amounts outside of the arithmetic's range.
func (r *Request) validate() error {
	for i := range r.Takes {
		for _, c := range r.Takes[i].Consume {
			if c.Amount < 0 || c.Amount > tokenbucket.MaxAmount {
				return fmt.Errorf("%w: take %d asks for %d millitokens of %s; it must be 0 to %d",
					ErrInvalid, i, c.Amount, c.Limit, int64(tokenbucket.MaxAmount))
			}
		}
		if r.Takes[i].Lease != (LeasePolicy{}) {
			if err := r.Takes[i].Lease.Check(); err != nil {
				return fmt.Errorf("take %d: %w", i, err)
			}
		}
		if len(r.Takes[i].Parents) >= MaxLevels {
			return fmt.Errorf("%w: take %d names %d ancestors; at most %d are allowed", ErrInvalid, i, len(r.Takes[i].Parents), MaxLevels-1)
		}
	}
	return nil
}

func (r *Request) namespace() string {
	if r.Namespace == "" {
		return DefaultNamespace
	}
	return r.Namespace
}
