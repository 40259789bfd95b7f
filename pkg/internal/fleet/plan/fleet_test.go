package plan_test

import (
	"cmp"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// fleet is some replicas that write one item, each from the state that it saw last, and
// some of them long after they planned.
type fleet struct {
	*rapid.T
	*world
	limits   *limiter.Limits
	scripts  bool // the server runs scripts
	now      int64
	truth    *schema.Bucket
	replicas [3]replica
	flights  []*flight
	events   []event
}

func (f *fleet) Helper()                      { f.T.Helper() }
func (f *fleet) Fatalf(s string, args ...any) { f.T.Helper(); f.T.Fatalf(s, args...) }

// replica is one of the fleet. Its holders' stocks are in units.
type replica struct {
	seen     *schema.Bucket // as an image of the item has it
	ahead    *schema.Bucket // the same with a write of its own that is under way; nil = none
	sequence uint16
	lease    *schema.Lease
	stock    []*big.Int // by balance
	refilled int64
}

// flight is a write under way.
type flight struct {
	replica int
	write   *plan.Write
	request *plan.Request
	sent    int64
	alone   bool // it was planned on a state that the replica saw
}

// event is an amount of the first limit that was taken, or given back below 0. Its time
// is between the plan of a write and its application.
type event struct {
	from, to int64
	amount   int64 // millitokens
}

func newFleet(t *rapid.T) *fleet {
	f := &fleet{T: t, world: newWorld(t), scripts: rapid.Bool().Draw(t, "scripts"), now: epoch}
	f.limits = limitsOf(t,
		limiter.Custom("a", rapid.Int64Range(1, 20).Draw(t, "capacity"), rapid.Int64Range(1, 20).Draw(t, "refill"), time.Second),
		limiter.Custom("b", 50, 7, 1100*time.Millisecond))
	st := plan.NewStage(schema.NewBucket(f.limits, 1, f.now), f.now, plan.Options{})
	_, r := op(t, f.limits, 1, limiter.Spend{Limit: "a", Take: 1})
	f.apply(st, r)
	_, f.truth = f.send(st.Write(f.id(9), 1), 0)
	f.took(f.now, 1)
	for i := range f.replicas {
		f.replicas[i].seen = f.truth
	}
	return f
}

func (f *fleet) apply(st *plan.Stage, r *plan.Request) bool {
	if v := st.Weigh(r); v != plan.Commutes && v != plan.Exact {
		return false
	}
	st.Apply(r)
	return true
}

func (f *fleet) took(at, n int64) { f.events = append(f.events, event{at, at, n}) }

// plan has a replica plan a request, which is sent at once and applied later.
func (f *fleet) plan(sp limiter.Spend) {
	i := rapid.IntRange(0, len(f.replicas)-1).Draw(f.T, "replica")
	r := &f.replicas[i]
	lift, base := rapid.SampledFrom([]int64{0, 0, 1, 20}).Draw(f.T, "lift"), cmp.Or(r.ahead, r.seen)
	unseen := f.scripts && rapid.IntRange(0, 3).Draw(f.T, "unseen") == 0
	if unseen {
		base = schema.NewBucket(f.limits, 1, f.now)
	}
	st := plan.NewStage(base, f.now, plan.Options{Lift: lift, Guard: lift / 2, Scripts: f.scripts})
	_, q := op(f, f.limits, 1, sp)
	if !f.apply(st, q) {
		return
	}
	if st.Exact() && r.ahead != nil { // an exact write waits for an image
		return
	}
	w := st.Write(f.id(uint32(i)), 1) // #nosec G115 -- few
	f.flights = append(f.flights, &flight{replica: i, write: w, request: q, sent: st.Now(), alone: r.ahead == nil && !unseen})
	if rapid.IntRange(0, 3).Draw(f.T, "copied") == 0 {
		f.flights = append(f.flights, f.flights[len(f.flights)-1])
	}
	if !w.Exact() && rapid.Bool().Draw(f.T, "pipelined") {
		r.ahead = w.After()
	}
}

// land applies one of the writes under way.
func (f *fleet) land() {
	if len(f.flights) == 0 {
		return
	}
	k := rapid.IntRange(0, len(f.flights)-1).Draw(f.T, "flight")
	w := f.flights[k]
	f.flights = slices.Delete(f.flights, k, k+1)
	landed, image := f.send(w.write, 0)
	f.truth = image
	f.replicas[w.replica].seen, f.replicas[w.replica].ahead = image, nil
	if !landed {
		return
	}
	if outcome := w.write.Outcome(image); outcome != plan.Landed {
		f.Fatalf("the outcome of an applied write is %d", outcome)
	}
	if w.alone && image.Serial == w.write.After().Serial { // a reply may leave it out
		f.sameState(w.write.After(), image)
	}
	w.write.Settle(image)
	for _, sp := range w.request.Spends {
		if sp.Limit != "a" {
			continue
		}
		if w.request.Admitted {
			f.events = append(f.events, event{w.sent, f.now, sp.Take})
		}
		if sp.Give > 0 {
			f.events = append(f.events, event{w.sent, f.now, -sp.Give})
		}
	}
}

// lease has a replica write its lease, from the state that it saw.
func (f *fleet) lease() {
	i := rapid.IntRange(0, len(f.replicas)-1).Draw(f.T, "replica")
	r := &f.replicas[i]
	f.refill(r)
	st := plan.NewStage(r.seen, f.now, plan.Options{})
	r.sequence++
	q := plan.LeaseWrite{Replica: uint32(i), Seen: r.lease, Draw: make([]int64, 2)} // #nosec G115 -- few
	line := r.seen.Line
	rate, room := line.Rate, line.Room
	if r.lease != nil {
		rate, room = rate+r.lease.Rate, room+r.lease.Room
	}
	next := schema.Lease{Replica: q.Replica, Sequence: r.sequence}
	if rapid.IntRange(0, 3).Draw(f.T, "back") > 0 {
		next.Rate, next.Room = rapid.IntRange(0, rate).Draw(f.T, "rate"), rapid.IntRange(0, room).Draw(f.T, "room")
		q.Lease = &next
	} else if r.lease == nil {
		return
	}
	view := plan.At(r.seen, f.now)
	for l := range q.Draw {
		b := &r.seen.Balances[l]
		held := int64(0)
		if r.lease != nil {
			held = new(big.Int).Div(r.stock[l], unitOf(b)).Int64()
		}
		most := new(big.Int).Div(roomIn(b, next.Room), unitOf(b)).Int64() - held
		q.Draw[l] = rapid.Int64Range(-held, max(-held, min(most, view.Tokens(l, f.now)))).Draw(f.T, "draw")
	}
	if err := st.Lease(q); err != nil {
		return
	}
	landed, image := f.send(st.Write(f.id(uint32(i)), 1), 0) // #nosec G115 -- few
	r.seen, r.ahead, f.truth = image, nil, image
	if !landed {
		return
	}
	r.granted(q, image)
}

// granted gives the replica the lease that its write left it.
func (r *replica) granted(q plan.LeaseWrite, image *schema.Bucket) {
	if r.lease == nil {
		r.stock = []*big.Int{new(big.Int), new(big.Int)}
	}
	if r.lease = q.Lease; r.lease == nil {
		return
	}
	for l, n := range q.Draw {
		b := &image.Balances[l]
		r.stock[l] = new(big.Int).Add(r.stock[l], new(big.Int).Mul(big.NewInt(n), unitOf(b)))
		if most := roomIn(b, r.lease.Room); r.stock[l].Cmp(most) > 0 {
			r.stock[l] = most
		}
	}
}

func unitOf(b *schema.Balance) *big.Int { return big.NewInt(b.Share.Period * schema.Parts) }

func roomIn(b *schema.Balance, parts int) *big.Int {
	room := new(big.Int).Mul(big.NewInt(b.Share.Capacity), big.NewInt(b.Share.Period))
	return room.Mul(room, big.NewInt(int64(parts)))
}

// refill brings the lease of a replica up to now.
func (f *fleet) refill(r *replica) {
	elapsed := f.now - r.refilled
	r.refilled = f.now
	if r.lease == nil {
		return
	}
	for l := range r.stock {
		b := &r.seen.Balances[l]
		due := new(big.Int).Mul(big.NewInt(elapsed*int64(r.lease.Rate)), big.NewInt(b.Share.Amount))
		r.stock[l] = due.Add(due, r.stock[l])
		if most := roomIn(b, r.lease.Room); r.stock[l].Cmp(most) > 0 {
			r.stock[l] = most
		}
	}
}

// serve has a replica take of its lease.
func (f *fleet) serve() {
	r := &f.replicas[rapid.IntRange(0, len(f.replicas)-1).Draw(f.T, "replica")]
	f.refill(r)
	if r.lease == nil {
		return
	}
	unit := unitOf(&r.seen.Balances[0])
	n := rapid.Int64Range(0, new(big.Int).Div(r.stock[0], unit).Int64()).Draw(f.T, "served")
	r.stock[0] = new(big.Int).Sub(r.stock[0], new(big.Int).Mul(big.NewInt(n), unit))
	f.took(f.now, n)
}

// reap counts the lease of a replica that is gone as spent.
func (f *fleet) reap() {
	i := rapid.IntRange(0, len(f.replicas)-1).Draw(f.T, "dead")
	dead := &f.replicas[i]
	by := &f.replicas[(i+1)%len(f.replicas)]
	if dead.lease == nil {
		return
	}
	st := plan.NewStage(by.seen, f.now, plan.Options{})
	if err := st.Lease(plan.LeaseWrite{Replica: uint32(i), Seen: by.seen.Lease(uint32(i))}); err != nil || by.seen.Lease(uint32(i)) == nil { // #nosec G115 -- few
		return
	}
	landed, image := f.send(st.Write(f.id(8), 1), 0)
	by.seen, by.ahead, f.truth = image, nil, image
	if landed {
		dead.lease = nil
	}
}

// within wants no window to have more than one bucket allows.
func (f *fleet) within() {
	p := f.limits.Params(0)
	for _, first := range f.events {
		for _, last := range f.events {
			if last.to < first.from {
				continue
			}
			sum := int64(0)
			for _, e := range f.events {
				if e.amount < 0 && e.to >= first.from && e.from <= last.to || e.from >= first.from && e.to <= last.to {
					sum += e.amount
				}
			}
			if most := p.Capacity + (last.to-first.from)*p.Amount/p.Period; sum > most {
				f.Fatalf("%d ms to %d ms: %d millitokens were taken, want %d at most: %v", first.from-epoch, last.to-epoch, sum, most, f.events)
			}
		}
	}
}

// TestNoWindowHasTooMuch: writes are planned from any states and applied to any states,
// with leases and without. No window of time has more than one bucket allows.
func TestNoWindowHasTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		amount := func() int64 { return rapid.Int64Range(1, f.limits.Params(0).Capacity).Draw(t, "amount") }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			f.now += rapid.SampledFrom([]int64{0, 0, 1, 20, 500}).Draw(t, "elapsed")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				f.plan(limiter.Spend{Limit: "a", Refund: amount()})
			case 1:
				f.plan(limiter.Spend{Limit: "a", Charge: amount()})
			case 2:
				f.plan(limiter.Spend{Limit: "b", Take: amount()})
			case 3, 4:
				f.plan(limiter.Spend{Limit: "a", Take: amount()})
			case 5:
				f.lease()
			case 6:
				f.serve()
			case 7:
				f.reap()
			case 8:
				f.plan(limiter.Spend{Limit: "a", Take: amount(), Refund: rapid.Int64Range(0, 3000).Draw(t, "refund")})
			default:
				f.land()
			}
		}
		for len(f.flights) > 0 {
			f.land()
		}
		f.within()
	})
}
