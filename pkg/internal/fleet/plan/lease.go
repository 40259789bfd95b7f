package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// maxLeaseTime is the latest time, and less 0 the earliest, at which a line changes: in
// Unix ms, so that offsets stay in range.
const maxLeaseTime = 1 << 52

// LeaseWrite is the part of a write that changes the lease of one replica. It grants, renews,
// grows, shrinks or returns it, or reaps that of a holder that is gone.
//
// Of each limit Draw millitokens go from the centre to the holder; below 0 they come back.
// The room moves with its parts, whether there are tokens in it or not. So a lease without
// parts that draws nothing counts as spent in full: that is a reap.
type LeaseWrite struct {
	Replica uint32
	Seen    *schema.Lease // that the state must have; nil = none
	Lease   *schema.Lease // that the write leaves; nil = none. Its Replica is not compared
	Draw    []int64       // by index of the limits that the bucket is under, unlimited ones included; nil = nothing
	// Usage is the net consumption that the write counts, in millitokens, by index as Draw: the
	// holder served it, and no write has counted it; nil = nothing.
	Usage []int64
}

// counts reports whether a write returns a lease and counts its consumption. An item without the slot does
// not show whether that was counted: another replica may have freed the slot.
func (q *LeaseWrite) counts() bool {
	return q != nil && q.Lease == nil && slices.ContainsFunc(q.Usage, func(n int64) bool { return n != 0 })
}

// ErrLease says that a lease cannot be written on a state: parts or tokens are not there,
// another lease is in its place, the shard is retired, or the item has schema.MaxLeases. A stage is then as before.
var ErrLease = errors.New("the lease does not fit the state of the bucket")

// Lease has the write change a lease as of the stage's time, before any request is applied.
// The centre refills by its old parts until then, and by its new ones from then on. Parts that
// are given away are gone from the plan on, and parts that come back count from the plan on:
// no write lies between the state and this one.
func (s *Stage) Lease(q LeaseWrite) error {
	if len(s.results) > 0 {
		return ErrOrder
	}
	was, is, err := s.leaseParts(q)
	if err != nil {
		return err
	}
	drawn := make([]number, len(s.staged))
	for i := range s.staged {
		st := &s.staged[i]
		millitokens := amountOf(q.Draw, s.next, st)
		if millitokens > max(st.bucket.Tokens, 0) {
			return ErrLease
		}
		if st.carried < 0 && (millitokens > 0 || is.Rate > was.Rate || is.Room > was.Room) { // rule: no lease begins or grows beside an extra
			return ErrLease
		}
		drawn[i] = st.draw(millitokens, is.Room-was.Room)
	}
	next := s.change()
	for i, n := range drawn {
		balance := &next.Balances[s.staged[i].index]
		balance.FullAt, balance.Carried = n.v, n.carried
	}
	setLease(next, q)
	reline(next, s.now, is.Rate-was.Rate, is.Room-was.Room)
	if s.lease == nil { // the outcome of the write is that of its first lease
		s.lease = &q
	}
	s.restage()
	for i := range s.staged {
		s.staged[i].usage += amountOf(q.Usage, s.next, &s.staged[i])
	}
	return nil
}

// leaseParts returns the parts of a lease before and after a write.
func (s *Stage) leaseParts(q LeaseWrite) (was, is schema.Lease, err error) {
	held := s.next.Lease(q.Replica)
	if s.next.Shard.Retired || s.now > maxLeaseTime || s.now < -maxLeaseTime {
		return was, is, ErrLease
	}
	if (held == nil) != (q.Seen == nil) || held != nil && *held != *q.Seen { // rule: only the lease that was seen is freed
		return was, is, ErrLease
	}
	if held != nil {
		was = *held
	}
	if q.Lease != nil {
		is = *q.Lease
	}
	if held == nil && q.Lease != nil && len(s.next.Leases) >= schema.MaxLeases {
		return was, is, ErrLease
	}
	line := s.next.Line
	if is.Rate < 0 || is.Room < 0 || is.Rate-was.Rate > line.Rate || is.Room-was.Room > line.Room {
		return was, is, ErrLease
	}
	return was, is, nil
}

// amountOf returns the millitokens of a staged limit in a list by index of the limits. It is 0 where
// the bucket or the list does not have the limit.
func amountOf(amounts []int64, b *schema.Bucket, st *staged) int64 {
	if i := b.Limits.Find(st.Limit.Name); i >= 0 && i < len(amounts) {
		return amounts[i]
	}
	return 0
}

// draw moves millitokens and parts of the room from the centre to a holder.
func (st *staged) draw(millitokens int64, parts int) number {
	m := &st.meter
	n := number{v: m.refilled, carried: st.bucket.Carried}
	if st.carried < 0 {
		n.carried = st.carried
	}
	if !m.full(st.number) {
		n.v = st.v
	}
	n.v = n.v.Add(m.units(millitokens)).Sub(roomOf(st.Balance, parts)) // rule: a dead lease counts as spent
	return m.fill(n)
}

// setLease puts the lease of a write into its place.
func setLease(b *schema.Bucket, q LeaseWrite) {
	k, found := slices.BinarySearchFunc(b.Leases, q.Replica, func(l schema.Lease, replica uint32) int { return cmp.Compare(l.Replica, replica) })
	switch {
	case q.Lease == nil && found:
		b.Leases = slices.Delete(b.Leases, k, k+1)
		return
	case q.Lease == nil:
		return
	case !found:
		b.Leases = slices.Insert(b.Leases, k, schema.Lease{})
	}
	b.Leases[k] = *q.Lease
	b.Leases[k].Replica = q.Replica
}

// reline gives parts of the centre away at a time; below 0 they come back. The clock of
// the centre has no jump there. Without leases it is a whole line again.
func reline(b *schema.Bucket, now int64, rate, room int) {
	was := b.Line
	b.Line.Rate -= rate
	b.Line.Room -= room
	b.Line.Offset += int64(rate) * now // rule: a change of the rate counts from now on
	if b.Leased() {
		return
	}
	b.Line, b.Pending = schema.WholeLine(), 0
	for i := range b.Balances {
		of := &b.Balances[i]
		if of.Dormant {
			continue
		}
		of.FullAt = of.FullAt.Add(of.Refilled(b.Line, now).Sub(of.Refilled(was, now)))
	}
}
