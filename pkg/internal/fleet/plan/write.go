package plan

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// ID is the id of a write, the slot of its replica, and the channel of a take in it. Slots are
// 0 to schema.SlotCount-1, channels 0 to schema.ChannelCount-1. No two takes that are under way
// share a channel.
type ID struct {
	Slot, Channel int
	Write         schema.WriteID
}

// Write is one conditional write of an item: a put where there is none, else an update. It is never changed
// but by Settle.
type Write struct {
	ID

	base   *schema.Bucket // that it was planned from
	after  *schema.Bucket // state that it leaves of that
	exact  bool
	books  bool    // a commuting write that rests on the id of the last charge or refund
	takes  bool    // it takes or charges
	units  int64   // write units that it counts
	usage  []usage // by limit
	forms  []change
	stage  *Stage      // whose requests it decides; nil = none
	lease  *LeaseWrite // that it carries out; nil = none
	named  bool        // it leaves its id on the item
	turn   bool        // it asks for a turn, see [Turn]
	upsert bool        // it creates, or takes from an item that is there, see upsert.go
	own    bool        // for an exact write that no other replica makes
}

// usage is the consumption of a limit that a write counts, in millitokens.
type usage struct {
	limit string
	n     int64
}

// change is how a commuting write changes one limit.
type change struct {
	limit string
	form
}

// Write returns the write that does all that was applied, and counts units write units;
// nil where nothing was.
func (s *Stage) Write(id ID, units int64) *Write {
	if len(s.results) == 0 && s.next == s.base {
		return nil
	}
	named := len(s.results) > 0 || s.folded || s.marks || s.lease.counts() // rule: a return that counts leaves its id
	w := &Write{ID: id, base: s.base, exact: s.exact, books: s.books, takes: s.takes, units: units, stage: s, lease: s.lease, named: named, upsert: s.upserts()}
	after := *s.next
	after.Serial++
	after.Shard.Units += units
	after.Balances = slices.Clone(after.Balances)
	w.forms, w.usage = make([]change, 0, len(s.staged)), make([]usage, 0, len(s.staged)+len(s.gone))
	for i := range s.staged {
		st := &s.staged[i]
		n := st.number
		if !s.exact {
			n = number{st.form.leaves(st.seen.v), st.seen.carried}
			w.change(st)
		}
		after.Balances[st.index].FullAt, after.Balances[st.index].Carried = n.v, n.carried
		if st.usage != 0 {
			w.usage = append(w.usage, usage{st.Limit.Name, st.usage})
		}
	}
	for _, u := range s.gone {
		if after.Any(u.limit) != nil { // else its counter goes with it
			w.usage = append(w.usage, u)
		}
	}
	after.Version.Generation = max(after.Version.Generation, s.raise)
	if s.takes {
		after.Taken = max(after.Taken, s.now)
	}
	if s.exact {
		after.At, after.Turn = s.now, schema.Turn{}
	}
	switch {
	case !w.named: // a state shows by itself whether the write was applied
	case w.InChannel():
		after.Slots[id.Slot][id.Channel] = id.Write
	default:
		after.Booked[id.Slot] = id.Write
	}
	after.TTL = s.ttl(&after)
	if s.exact && restructured(s.base, &after) {
		after.Shard.Epoch = max(after.Shard.Epoch, s.base.Shard.Epoch+1)
		if after.Leased() { // no earlier take can be applied any more, and many leases need the bytes
			after.Slots = [schema.SlotCount]schema.Takes{}
		}
	}
	w.after = &after
	return w
}

func (w *Write) change(st *staged) {
	if st.form.touched {
		w.forms = append(w.forms, change{st.Limit.Name, st.form})
	}
}

// leaves returns the number that a commuting write makes of v.
func (f *form) leaves(v schema.Units) schema.Units {
	if f.lifted {
		return f.lift.Add(f.by) // rule: a lift goes to its bound
	}
	return f.from(v).Add(f.by)
}

// from returns the number that a write adds to, of v.
func (f *form) from(v schema.Units) schema.Units {
	if f.above && v.Cmp(f.floor) < 0 { // rule: a take above a floor counts the refill up to its time
		return f.floor
	}
	return v
}

// Creates reports whether the write is the put of a new item.
func (w *Write) Creates() bool { return !w.base.Exists() }

// Exact reports whether the write has to find the very state that it was planned from.
func (w *Write) Exact() bool { return w.exact }

// InChannel reports whether the write leaves its id in its channel, as takes do. Others leave theirs where charges and
// refunds do.
func (w *Write) InChannel() bool { return !w.books && (!w.exact || w.upsert) }

// After returns the state that the write leaves if it finds the one that it was planned
// from. After a commuting write that state serves for planning other commuting ones while
// the write is under way.
func (w *Write) After() *schema.Bucket { return w.after }

// Put returns a write that creates. item has the keys and names of the item, and is filled in.
func (w *Write) Put(item map[string]types.AttributeValue) *schema.ItemWrite {
	w.fill(item)
	put := schema.PutNew(item)
	if w.upsert {
		put.OrUpdate = w.orUpdate(put.Key)
	}
	return put
}

// fill fills in the attributes of a new item.
func (w *Write) fill(item map[string]types.AttributeValue) {
	maps.Copy(item, w.after.Attributes())
	for _, u := range w.usage {
		item[schema.LimitAttr(u.limit, schema.LimitConsumed)] = schema.NumberAttribute(u.n)
	}
	if w.units > 0 {
		item[schema.AttrUnits] = schema.NumberAttribute(w.units)
	}
}

// Update returns a write that does not create. It answers with the item as
// it is afterwards, or as it is when the condition does not hold.
func (w *Write) Update(k schema.Key) *schema.ItemWrite {
	to := schema.NewUpdate(k)
	switch {
	case w.turn:
		w.ask(to)
	case w.exact:
		w.replace(to)
	default:
		w.add(to)
	}
	w.count(to)
	return to
}

// count has the item count the write units and the consumption.
func (w *Write) count(to *schema.ItemWrite) {
	to.Add(schema.AttrUnits, w.units)
	for _, u := range w.usage {
		to.Add(schema.LimitAttr(u.limit, schema.LimitConsumed), u.n)
	}
}

// pin has the write find the epoch that it was planned in.
func (w *Write) pin(to *schema.ItemWrite) {
	to.Require(schema.AttrEpoch, "=", schema.NumberAttribute(w.base.Shard.Epoch)) // rule: each write pins the epoch
}

// replace makes the update of an exact write: all that differs.
func (w *Write) replace(to *schema.ItemWrite) {
	w.pin(to)
	to.Require(schema.AttrSerial, "=", schema.NumberAttribute(w.base.Serial)) // rule: an exact write pins the serial number
	differ(to, w.base.Attributes(), w.after.Attributes())
	forgetUsage(to, w.base, w.after)
}

// differ makes the update of all attributes that differ.
func differ(to *schema.ItemWrite, had, has map[string]types.AttributeValue) {
	for _, name := range sortedNames(has) {
		if !sameAttribute(had[name], has[name]) {
			to.Set(name, has[name])
		}
	}
	for _, name := range sortedNames(had) {
		if _, stays := has[name]; !stays {
			to.Remove(name)
		}
	}
}

// forgetUsage removes the counters of limits that are gone.
func forgetUsage(to *schema.ItemWrite, base, after *schema.Bucket) {
	for i := range base.Balances {
		if name := base.Balances[i].Limit.Name; after.Any(name) == nil {
			to.Remove(schema.LimitAttr(name, schema.LimitConsumed))
		}
	}
}

// add makes the update of a commuting write.
func (w *Write) add(to *schema.ItemWrite) {
	w.pin(to)
	for i := range w.forms {
		w.forms[i].express(to)
	}
	id := &types.AttributeValueMemberB{Value: []byte(w.Write)}
	switch seen := w.base.Booked[w.Slot]; {
	case !w.books:
		w.mark(to)
	case seen == "":
		to.RequireAbsent(schema.BookedAttr(w.Slot)) // rule: the first charge of a slot is the first one
		to.Set(schema.BookedAttr(w.Slot), id)
	default: // it is done once, also by a copy that is late: no id comes back
		to.Require(schema.BookedAttr(w.Slot), "=", &types.AttributeValueMemberB{Value: []byte(seen)}) // rule: a charge pins the last one of its slot
		to.Set(schema.BookedAttr(w.Slot), id)
	}
	if w.takes {
		to.Set(schema.AttrLastTake, schema.NumberAttribute(w.after.Taken))
	}
	if g := w.after.Version.Generation; g != w.base.Version.Generation {
		to.Require(schema.AttrGeneration, "<=", schema.NumberAttribute(g)) // rule: the generation of the limits does not fall
		to.Set(schema.AttrGeneration, schema.NumberAttribute(g))
	}
	if w.after.Pending != w.base.Pending {
		w.bringPending(to)
	}
	switch w.after.TTL {
	case w.base.TTL:
	case 0:
		to.Remove(schema.AttrTTL)
	default:
		to.RaiseTo(schema.AttrTTL, w.after.TTL) // rule: no write lowers a ttl
	}
	to.Add(schema.AttrSerial, 1)
}

// mark has the write leave its id in its channel. A copy finds it there.
func (w *Write) mark(to *schema.ItemWrite) {
	id := &types.AttributeValueMemberB{Value: []byte(w.Write)}
	attr := schema.SlotAttr(w.Slot, w.Channel) // rule: a take leaves its id in its channel
	to.Require(attr, "<>", id)                 // rule: a copy of a take is refused by its id
	to.Set(attr, id)
}

// bringPending says that newer limits wait for leases. The epoch pins that there are some.
func (w *Write) bringPending(to *schema.ItemWrite) {
	if w.base.Pending == 0 {
		to.RequireAbsent(schema.AttrPending)
	} else {
		to.Require(schema.AttrPending, "=", schema.NumberAttribute(w.base.Pending))
	}
	to.Set(schema.AttrPending, schema.NumberAttribute(w.after.Pending))
}

// express adds the conditions and the update of one limit.
func (c *change) express(to *schema.ItemWrite) {
	attr := schema.LimitAttr(c.limit, schema.LimitFullAt)
	if c.least.there {
		to.Require(attr, ">=", c.least.at.Attribute())
	}
	if c.most.there {
		to.Require(attr, "<=", c.most.at.Attribute())
	}
	switch {
	case c.above:
		to.AddAbove(attr, c.floor.Attribute(), c.by.Attribute())
	case c.lifted:
		to.Set(attr, c.leaves(schema.Units{}).Attribute())
	case c.by.Sign() != 0:
		to.AddValue(attr, c.by.Attribute())
	}
}

// restructured reports whether a write changed anything that commuting writes rest on:
// they are of the epoch before, and must not find the state after it.
func restructured(was, is *schema.Bucket) bool {
	if was.Version.Hash != is.Version.Hash || was.Line.Rate != is.Line.Rate || was.Line.Offset != is.Line.Offset || is.Line.Room < was.Line.Room { // rule: another line raises the epoch
		return true
	}
	if was.Exists() && was.TTL == 0 && is.TTL != 0 { // a write that was planned without one has no condition on it
		return true
	}
	if ended(was, is) { // rule: the end of an extra raises the epoch
		return true
	}
	one, other := was.Shard, is.Shard
	one.Units, other.Units = 0, 0
	return one != other || returned(was, is) // rule: tokens that come back raise the epoch
}

// ended reports whether a limit has an extra in one of two states alone.
func ended(was, is *schema.Bucket) bool {
	return slices.ContainsFunc(is.Balances, func(of schema.Balance) bool {
		before := was.Any(of.Limit.Name)
		return before != nil && (before.Extra() > 0) != (of.Extra() > 0)
	})
}

// raised reports whether a limit has an extra.
func raised(b *schema.Bucket) bool {
	return slices.ContainsFunc(b.Balances, func(of schema.Balance) bool { return of.Extra() > 0 })
}

// returned reports whether a lease write gave tokens back to the centre. A take that was
// planned before must not get the refill since.
func returned(was, is *schema.Bucket) bool {
	if slices.Equal(was.Leases, is.Leases) {
		return false
	}
	for i := range is.Balances {
		if before := was.Any(is.Balances[i].Limit.Name); before != nil && is.Balances[i].FullAt.Cmp(before.FullAt) < 0 {
			return true
		}
	}
	return false
}
