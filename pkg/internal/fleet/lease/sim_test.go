package lease_test

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// happening is something that the simulation does at a time, in ms.
type happening struct {
	at    float64
	order int
	do    func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// fleet is a number of replicas that share one item, in simulated time.
type fleet struct {
	scenario scenario
	random   *rand.Rand
	now      float64
	agenda   agenda
	order    int
	item     centre
	lanes    []*lane
	outcome  outcome
}

func (f *fleet) after(ms float64, do func()) {
	f.order++
	heap.Push(&f.agenda, happening{at: f.now + ms, order: f.order, do: do})
}

func (f *fleet) ms() int64 { return int64(f.now) }

func (f *fleet) clock() lease.Clock { return lease.Clock{Mono: f.ms(), Wall: f.ms()} }

// latency is the time from a send to its reply: lognormal, with a p99 of 2.86 × the median.
func (f *fleet) latency() float64 { return f.scenario.median * math.Exp(0.4513*f.random.NormFloat64()) }

// centre is the item, reckoned exactly.
type centre struct {
	limits     []tokenbucket.Params
	exists     bool
	version    lease.Version
	rate, room int
	buckets    []tokenbucket.Bucket
	slots      map[int]lease.Slot
	lost       int64 // millitokens that had no place
}

func newCentre(limits []tokenbucket.Params) centre {
	return centre{limits: limits, rate: lease.Parts, room: lease.Parts, buckets: make([]tokenbucket.Bucket, len(limits)), slots: map[int]lease.Slot{}}
}

func (c *centre) params(l int) tokenbucket.Params {
	p, ok := lease.Scale(c.limits[l], c.rate, c.room)
	if !ok {
		panic("limit out of range")
	}
	return p
}

// create makes the item, full.
func (c *centre) create(now int64) {
	c.exists = true
	for l := range c.limits {
		c.buckets[l] = tokenbucket.Full(c.params(l), now)
	}
}

// apply applies a lease write, and reports whether it was planned on this version.
func (c *centre) apply(replica int, p *lease.Plan) bool {
	if p.Pinned != c.version || p.Create == c.exists {
		return false
	}
	if p.Create {
		c.create(p.Now)
	}
	old := c.slots[replica]
	if old.Rate != p.OldRate || old.Room != p.OldRoom {
		panic("plan with another slot")
	}
	for l := range c.limits {
		c.buckets[l] = c.buckets[l].Refill(c.params(l), p.Now)
	}
	c.rate -= p.Slot.Rate - p.OldRate
	c.room -= p.Slot.Room - p.OldRoom
	if c.rate < 0 || c.room < 0 {
		panic("parts below zero")
	}
	for l := range c.limits {
		b := &c.buckets[l]
		if p.Slot.Room > 0 && p.Draw[l] > 0 && b.Tokens < p.Draw[l] {
			panic("tokens that are not there")
		}
		b.Tokens -= p.Draw[l]
		if over := b.Tokens - c.params(l).Capacity; over > 0 {
			b.Tokens -= over
			c.lost += over
		}
	}
	if p.Slot.Rate != p.OldRate || p.Slot.Room > p.OldRoom {
		c.version.Epoch++
	}
	c.version.Serial++
	c.slots[replica] = p.Slot
	if p.Kind == lease.Return {
		delete(c.slots, replica)
	}
	return true
}

// take applies a plain write, of takes if they are there, and of charges.
func (c *centre) take(seen lease.Version, now, takes, charges int64) bool {
	if (seen == lease.Version{}) == c.exists || seen.Epoch != c.version.Epoch {
		return false
	}
	if !c.exists {
		c.create(now)
	}
	b := c.buckets[0].Refill(c.params(0), now)
	if takes > 0 && b.Tokens < takes+charges {
		return false
	}
	b.Tokens -= takes + charges
	c.buckets[0] = b
	c.version.Serial++
	return true
}

// takeAll applies a plain take of several limits, if all tokens are there at its plan.
func (c *centre) takeAll(seen lease.Version, now int64, amounts []int64) bool {
	if !c.exists || seen.Epoch != c.version.Epoch {
		return false
	}
	for l, n := range amounts {
		if c.buckets[l].Refilled > now {
			return false
		}
		c.buckets[l] = c.buckets[l].Refill(c.params(l), now)
		if n > 0 && c.buckets[l].Tokens < n {
			return false
		}
	}
	for l, n := range amounts {
		c.buckets[l].Tokens -= n
	}
	c.version.Serial++
	return true
}

// reap frees a slot: its tokens count as spent.
func (c *centre) reap(replica int, now int64) {
	s := c.slots[replica]
	for l := range c.limits {
		c.buckets[l] = c.buckets[l].Refill(c.params(l), now)
	}
	c.rate += s.Rate
	c.room += s.Room
	delete(c.slots, replica)
	c.version.Epoch++
	c.version.Serial++
}

// replicas returns those that have a slot, in order.
func (c *centre) replicas() []int { return slices.Sorted(maps.Keys(c.slots)) }

// view is the image that a replica gets.
func (c *centre) view(replica int) lease.View {
	v := lease.View{Exists: c.exists, Version: c.version, Rate: c.rate, Room: c.room}
	for l := range c.limits {
		v.Centre = append(v.Centre, c.buckets[l])
		v.Params = append(v.Params, c.params(l))
	}
	v.Own, v.HasOwn = c.slots[replica]
	for _, i := range c.replicas() {
		if i != replica {
			v.Others = append(v.Others, c.slots[i])
		}
	}
	return v
}

// image is the view, and the slots of the others with their replicas.
func (c *centre) image(replica int) (lease.View, []lease.SlotID) {
	var slots []lease.SlotID
	for _, i := range c.replicas() {
		if i != replica {
			slots = append(slots, lease.SlotID{Replica: uint32(i), Seq: c.slots[i].Seq}) // #nosec G115 -- a small index
		}
	}
	return c.view(replica), slots
}
