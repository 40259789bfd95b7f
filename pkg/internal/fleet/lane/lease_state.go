package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// held is the lease of a lane: the state machine of package lease, and its place in the
// item. Without a holder nothing is held.
type held struct {
	rest       time.Time // no lease write is sent before
	holder     *lease.Holder
	hash       uint64 // of the limits that holder is for
	level      int    // of the shard that holder is for
	generation uint64 // of them, when holder was made
	limits     *limiter.Limits
	index      []int // of holder's limits among all
	ledger     Ledger
	watch      lease.Watch
	sequence   uint16 // of the last lease write of this replica on the item
	policy     limiter.LeasePolicy
	asked      int64     // time of the plan of the last lease write
	issued     [8]uint16 // sequence numbers of the last lease writes
	writes     int       // lease writes so far
	shown      []uint16  // sequence number of the own slot as the item last had it; empty = it had none
	reread     time.Time // when the item is read again, as a read of it failed; zero = it is not
	unknown    bool      // a lease write has no reply: the item is to be read
	looked     time.Time // the item was read for requests of others
	settles    time.Time // a turn is asked for to settle the last return, not before; zero = there is none to settle
	looks      int       // reads that the last lease write made at once for the clock
	counted    bool      // among the leases
	listed     bool      // among the lanes with a lease, or that wait for an image to find their usage
	change     change
	drawn      []lease.Draw  // memory of the draws of the request in hand
	before     *lease.Holder // the one before, while there is none; nil = there was none
	named      []string      // its limits
}

// names returns the names of some limits.
func names(limits *limiter.Limits, index []int) []string {
	all := make([]string, len(index))
	for k, i := range index {
		all[k] = limits.At(i).Name
	}
	return all
}

// changeWait is for how long no lease is asked for after a change of the limits was last seen to
// wait for leases.
const changeWait = time.Second

// change is a change of the limits that waits for the leases of an item. The return of the last
// one leaves no sign of it in the item. Other leases would come before the change again.
type change struct {
	from       uint64 // hash of the limits of the item meanwhile
	generation uint64 // that is waited for
	until      time.Time
}

// saw takes in an image of the item.
func (c *change) saw(image *schema.Bucket, now time.Time) {
	switch {
	case image.Pending > 0 && image.Leased():
		c.from, c.generation, c.until = image.Version.Hash, image.Pending, now.Add(changeWait)
	case image.Version.Hash != c.from || image.Version.Generation >= c.generation: // rule: a wait for a change ends with any change
		c.until = time.Time{}
	}
}

// waits reports whether a change of the limits waits for leases.
func (c *change) waits(now time.Time) bool { return now.Before(c.until) }

// begin makes a holder for the limits of a state.
func (h *held) begin(state *schema.Bucket, policy limiter.LeasePolicy) {
	h.hash, h.generation, h.limits, h.index, h.policy = state.Version.Hash, state.Version.Generation, state.Limits, nil, policy
	h.level = state.Shard.Level
	var params []tokenbucket.Params
	for i := range state.Limits.Len() {
		if state.Limits.Unlimited(i) {
			continue
		}
		h.index = append(h.index, i)
		params = append(params, state.Balances[state.Find(state.Limits.At(i).Name)].Share)
	}
	h.holder = lease.New(params, policy, h.sequence)
	if before := h.before; before != nil && slices.Equal(names(h.limits, h.index), h.named) {
		h.holder.Follow(before)
	}
	h.before = nil
	h.ledger.Begin(h.limits, state.Version.Generation, h.index)
}

// fits reports whether the holder is for the share of limits that a shard of a level has. A split or a
// merge changes that share, and the limits stay.
func (h *held) fits(hash uint64, level int) bool {
	return h.hash == hash && h.level == level // rule: a lease is of the share of the shard
}

// end forgets the holder.
func (h *held) end() {
	if h.holder != nil {
		h.sequence = h.holder.Sequence()
		h.before, h.named = h.holder, names(h.limits, h.index)
	}
	h.holder = nil
}

// issue notes that a lease write was sent, unless it leaves no slot; nil = it was none. In an outage many
// are planned that are not sent: they must not drive out one that was applied.
func (h *held) issue(p *lease.Plan) {
	if p == nil || p.Kind == lease.Return {
		return
	}
	h.issued[h.writes%len(h.issued)] = p.Slot.Seq
	h.writes++
}

// copied reports whether another process wrote a lease under the number of this one: a slot
// holds one of the last lease writes of its replica, or the same as before, however many lease
// writes were refused since.
func (h *held) copied(own *schema.Lease) bool {
	if !own.Holds() || slices.Contains(h.shown, own.Sequence) {
		return false
	}
	return !slices.Contains(h.issued[:min(h.writes, len(h.issued))], own.Sequence) // rule: a lease of a copy is not the own one
}

// showed notes the own slot of an item.
func (h *held) showed(own *schema.Lease) {
	if h.shown = h.shown[:0]; own != nil {
		h.shown = append(h.shown, own.Sequence)
	}
}

// dead returns a replica whose lease is over, and still in the item.
func (h *held) dead(before *Predecessors, item *schema.Bucket, mono int64) (replica uint32, reaps bool) {
	if replica, reaps = before.lessee(item); reaps {
		return replica, true
	}
	return h.watch.Dead(mono)
}

// holds reports whether there is a lease, or may be.
func (h *held) holds() bool { return h.holder != nil && h.holder.State() != lease.None }

// serves reports whether a request may be served from the lease. It may under other limits, too: the
// bucket decides by its own until it is under newer ones.
func (h *held) serves(r *Request) bool { return h.holder != nil && !r.Policy.None }

// of returns the holder's index of a limit, or -1.
func (h *held) of(limit string) int { return slices.Index(h.index, h.limits.Find(limit)) }

// draws returns the tokens that a request draws from the lease. ok is whether the lease
// may decide it: not a request that also charges or refunds.
func (h *held) draws(r *plan.Request) (draws []lease.Draw, ok bool) {
	draws = h.drawn[:0]
	for i := range r.Spends {
		sp := &r.Spends[i]
		l := h.of(sp.Limit)
		if l < 0 {
			continue // not limited by it
		}
		if sp.Usage != sp.Cost-sp.Give || sp.Give > 0 || sp.Cost > 0 && sp.Need > 0 {
			return nil, false
		}
		take := max(sp.Take, sp.Ask)
		if need := max(sp.Need, take); need > 0 {
			draws = append(draws, lease.Draw{Limit: l, Need: need, Take: take})
		} else if sp.Cost == 0 {
			return nil, false // its answer must be exact, from the item
		}
	}
	h.drawn = draws
	return draws, true
}

// view returns a state of an item as the holder sees it. replicas is how many
// replicas use the item.
func (h *held) view(state *schema.Bucket, quick *plan.View, replica uint32, replicas int, now time.Time) lease.View {
	v := lease.View{
		Exists: true, Version: lease.Version{Epoch: state.Shard.Epoch, Serial: state.Serial}, Rate: state.Line.Rate, Room: state.Line.Room,
		Recall: h.change.waits(now) || state.Shard.Moving || state.Shard.Retired, Replicas: replicas,
		Centre: make([]tokenbucket.Bucket, 0, len(h.index)), Params: make([]tokenbucket.Params, 0, len(h.index)),
	}
	for _, i := range h.index {
		v.Centre, v.Params = append(v.Centre, quick.Centre[i]), append(v.Params, quick.Params[i])
	}
	for i := range state.Leases {
		l := &state.Leases[i]
		s := lease.Slot{Seq: l.Sequence, Rate: l.Rate, Room: l.Room, Demand: l.Demand, Stock: l.Stock, At: l.At}
		if l.Replica == replica {
			v.Own, v.HasOwn = s, true
		} else {
			v.Others = append(v.Others, s)
		}
	}
	return v
}

// write returns the change of a lease that a plan of the holder asks for.
func (h *held) write(p *lease.Plan, state *schema.Bucket, replica uint32) plan.LeaseWrite {
	q := plan.LeaseWrite{Replica: replica, Seen: state.Lease(replica), Draw: make([]int64, state.Limits.Len())}
	for l, i := range h.index {
		q.Draw[i] = p.Draw[l]
	}
	if p.Kind != lease.Return {
		s := &p.Slot
		q.Lease = &schema.Lease{Replica: replica, Sequence: s.Seq, Rate: s.Rate, Room: s.Room, Demand: s.Demand, Stock: s.Stock, At: s.At}
	}
	return q
}

// tell fills in the answer to a request that the lease decided.
func (h *held) tell(r *plan.Request, state *schema.Bucket, now int64, admitted bool) {
	r.Admitted, r.Under = admitted, state.Limits
	for i := range r.Spends {
		sp := &r.Spends[i]
		l := h.of(sp.Limit)
		sp.Held, sp.Exceeded, sp.Found, sp.Back, sp.Left = l >= 0, false, 0, 0, tokenbucket.Bucket{}
		if l < 0 {
			continue
		}
		if sp.Ask > 0 && admitted {
			sp.Take, sp.Need = sp.Ask, sp.Ask
		}
		need := max(sp.Need, sp.Ask)
		if !admitted && need > 0 {
			sp.Exceeded = !h.holder.Covers(now, []lease.Draw{{Limit: l, Need: need}})
		}
		sp.Left = h.holder.Report(l, now, need, !sp.Exceeded)
		if sp.Found = sp.Left.Tokens; admitted {
			sp.Found += sp.Take
			sp.Back = sp.Take
		}
	}
}

// unanswered notes that a write of a lease or a shard had no reply with an image, or was not sent in an
// outage. perhaps says that it may have been applied: then the item is read.
func (h *held) unanswered(perhaps bool, now time.Time) {
	h.unknown = h.unknown || perhaps
	h.rest = now.Add(leaseRetry)
}

// leaseRetry is how long a lease is left alone after a write of it had no reply.
const leaseRetry = 200 * time.Millisecond
