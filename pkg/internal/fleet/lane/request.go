package lane

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Wait is a call that waits for its requests. Its channel is made only for a call whose
// requests do not all end at once.
type Wait struct {
	left atomic.Int32 // requests without an end, and the call itself until Done
	done chan struct{}
}

// NewWait returns the wait for n requests, which is above 0 and small.
func NewWait(n int) *Wait {
	w := &Wait{}
	w.Begin(n)
	return w
}

// Begin begins the wait for n requests, which is above 0 and small. A wait may begin again when
// all requests of the one before have an end.
func (w *Wait) Begin(n int) {
	w.done = nil
	w.left.Store(int32(n) + 1) // #nosec G115 -- few
}

// Done returns a channel that is closed when all requests have an end. It is called once, after all
// requests were sent.
func (w *Wait) Done() <-chan struct{} {
	done := make(chan struct{})
	w.done = done
	w.end()
	return done
}

// end counts a request that has an end, or the call itself once its channel is there.
func (w *Wait) end() {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
}

// Request is one op's part on its way through the lane of one item. Until its end it
// belongs to the lane; then to the caller.
type Request struct {
	*plan.Request

	Site     *Site
	Index    int                 // of the shard
	At       int64               // the caller's time, corrected, Unix ms
	By       time.Duration       // by so much it was corrected
	Keep     bool                // where the call has no decision its caller is admitted: the tokens stay taken
	Policy   limiter.LeasePolicy // of the op
	Asks     bool                // it takes or peeks, so that Policy has a meaning
	Deadline time.Time           // of the caller; zero = none
	Wait     *Wait               // nil: no caller waits, as for tokens that are given back
	Err      error               // the end without a decision
	ByShare  bool                // its lane's share of the tokens denied it: the item may have enough

	lane    atomic.Value // *Lane: which it is in; another one when its shard is gone
	state   state
	unsure  bool      // an earlier write may take for it yet
	part    *part     // the part that the lease keeps for it; nil = none
	passed  bool      // a write went without it, as the lane's own part of the tokens was too small
	counted bool      // in the demand of the lease
	booked  bool      // by an earlier write, so that the one it is in will be refused
	strayed bool      // it was in a write of which a copy may be applied yet
	rest    *rest     // what its lane owes in its place, where it strayed and was decided late; nil = nothing
	apart   bool      // it is the rest of another one: the item books it, and no other request joins it
	late    bool      // it charges the takes of a call that was admitted late, and nothing else: in doubt it is written again
	asked   uint64    // the lane's count of events when it arrived
	entered time.Time // the lane
	expires time.Time // no write is sent for it later
	patient time.Time // until when it is tried again, where it is owed; zero = it has not failed yet
	doubts  int       // replies that it waited for because the clock is not trusted
}

// rest is what a lane owes in the place of a request that was decided late.
type rest struct {
	*Request

	told *plan.Request // the request as it was decided
}

// part is the part of a request that the lease keeps; the centre gives the rest.
type part struct {
	lease.Part

	spends []plan.Spend // as they were asked for
	kept   []int64      // by spend, in millitokens
}

// owed returns a request of the store itself, for which no caller waits.
func (r *Request) owed(of *plan.Request) *Request {
	return &Request{Request: of, Site: r.Site, Index: r.Index, At: r.At, By: r.By, state: promised}
}

// forced has the request charge its takes, below the debt floor if need be: its caller is admitted already.
func (r *Request) forced() {
	r.late = !r.Books()
	r.Request = r.Force()
}

// inherited returns the request as the next lanes get it.
func (r *Request) inherited() *Request {
	if r.Takes() {
		r.forced()
	}
	next := r.owed(r.Request)
	next.late = r.late
	return next
}

// retakes reports whether the request is a take, which is written again where it is not known whether it was applied:
// tokens are lost then at worst. A charge or a refund would be booked twice.
func (r *Request) retakes() bool { return r.late || r.Takes() && !r.Books() }

// at returns the caller's time by a newer reading of the clock. The correction may have changed while the request waited.
func (r *Request) at(clock awsdb.Reading) int64 {
	return r.At + (clock.Correction - r.By).Milliseconds()
}

// happen brings the request into the state that an event leads to, and reports whether the event can
// happen. One that cannot ends the request: its outcome is unknown.
func (r *Request) happen(e event) (ok bool) {
	next, ok := r.state.after(e)
	if r.state == over {
		return ok
	}
	if !ok {
		r.Err, next = fmt.Errorf("%w: a request that is %v was %v", limiter.ErrUncertain, r.state, e), over
	}
	r.state = next
	if next == over && r.Wait != nil {
		r.Wait.end()
	}
	return ok
}

// undone reports whether the tokens that its write takes are given back.
func (r *Request) undone() bool {
	return r.state == sentDenied || r.state == sentLeft && !r.Keep // rule: a call that leaves gets back what its write takes
}

// asksForSome reports whether the request takes the tokens that are there, up to an amount.
func (r *Request) asksForSome() bool {
	return slices.ContainsFunc(r.Spends, func(sp plan.Spend) bool { return sp.Ask > 0 })
}

// patience is how long the caller still waits.
func (r *Request) patience(now time.Time) time.Duration {
	if r.Deadline.IsZero() {
		return time.Hour
	}
	return max(r.Deadline.Sub(now), 0)
}

// withoutTakes returns the request that charges and refunds alone, nil when there is nothing.
func withoutTakes(r *plan.Request) *plan.Request {
	if !r.Books() {
		return nil
	}
	c := &plan.Request{Limits: r.Limits, Generation: r.Generation}
	for i := range r.Spends {
		if sp := r.Spends[i]; sp.Give > 0 || sp.Cost > 0 {
			c.Spends = append(c.Spends, plan.Spend{Limit: sp.Limit, Give: sp.Give, Cost: sp.Cost, Usage: sp.Usage, Forced: sp.Forced})
		}
	}
	return c
}

// most bounds sums of tokens, so that they stay in range.
const most = int64(1) << 60

// wanted are the newest limits that requests asked for while the item is under older ones; the
// zero wanted is none. A lease under the older ones goes on until the change.
type wanted struct {
	limits     *limiter.Limits
	generation uint64
}

func (w wanted) version() schema.Version {
	return schema.Version{Generation: w.generation, Hash: w.limits.Hash()}
}

// newer reports whether they are newer than a version.
func (w wanted) newer(than schema.Version) bool { return w.version().Newer(than) }

// among returns the newest limits of those and of the requests that wait.
func (w wanted) among(queue []*Request) (limits *limiter.Limits, generation uint64) {
	limits, generation = newest(queue)
	if limits == nil || w.limits != nil && w.newer(wanted{limits, generation}.version()) {
		return w.limits, w.generation
	}
	return limits, generation
}

// newest returns the newest limits of the requests that wait.
func newest(queue []*Request) (limits *limiter.Limits, generation uint64) {
	var newest schema.Version
	for _, r := range queue {
		own := schema.Version{Generation: r.Generation, Hash: r.Limits.Hash()}
		switch {
		case limits == nil || own.Newer(newest):
			limits, newest = r.Limits, own
		case own.Hash == newest.Hash:
			newest.Generation = max(newest.Generation, own.Generation)
		}
	}
	return limits, newest.Generation
}
