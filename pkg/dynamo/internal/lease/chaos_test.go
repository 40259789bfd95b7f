package lease_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// chaos is a few replicas that share one item for a while, amid lost, late and crossing
// messages, pauses, reaps, recalls, charges, refunds and large requests.
type chaos struct {
	random  *rand.Rand
	now     int64
	item    centre
	members []*member
	later   map[int64][]func()
	booked  [][]booking // by limit
	local   int         // admitted by a lease
	ended   int         // leases found over
	reaped  int
	large   int
	unknown int // outcomes that were not known
}

// booking is a number of millitokens that a caller got, or gave back, at a time.
type booking struct {
	at     int64
	amount int64
}

// member is a replica.
type member struct {
	index    int
	holder   *lease.Holder
	plan     *lease.Plan // in flight
	watch    lease.Watch
	view     lease.View
	paused   int64 // until then
	stood    int64 // ms that the monotonic clock stood still
	behind   int64 // ms that the wall clock is behind
	era      uint64
	reaping  bool
	admitted []int64 // of each limit, by the lease, to give back from
}

func newChaos(seed uint64) *chaos {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 2)), now: 1_800_000_000_000, later: map[int64][]func(){}}
	limits := []tokenbucket.Params{
		limiter.Custom("a", 20+c.random.Int64N(200), 20+c.random.Int64N(400), 1_000_000_000).Params(),
		{Capacity: 100_123 + c.random.Int64N(500_000), Amount: 77_001 + c.random.Int64N(300_000), Period: 1777},
	}[:1+c.random.IntN(2)]
	c.item = newCentre(limits)
	c.booked = make([][]booking, len(limits))
	for i := range 2 + c.random.IntN(3) {
		m := &member{index: i, admitted: make([]int64, len(limits))}
		m.holder = lease.New(limits, limiter.LeasePolicy{}, 65_530)
		c.members = append(c.members, m)
	}
	return c
}

func (c *chaos) at(ms int64, do func()) { c.later[c.now+ms] = append(c.later[c.now+ms], do) }

func (c *chaos) one(in int) bool { return c.random.IntN(in) == 0 }

func (c *chaos) delay() int64 {
	if c.one(10) {
		return c.random.Int64N(200)
	}
	return 1 + c.random.Int64N(8)
}

func (c *chaos) clock(m *member) lease.Clock {
	return lease.Clock{Mono: c.now - m.stood, Wall: c.now - m.behind, Era: m.era}
}

// run lets some time pass.
func (c *chaos) run(ms int64) {
	busy := 0
	for end := c.now + ms; c.now < end; c.now++ {
		for _, do := range c.later[c.now] {
			do()
		}
		delete(c.later, c.now)
		if c.now%500 == 0 {
			busy = c.random.IntN(4) // the load changes
		}
		for _, m := range c.members {
			if m.paused > c.now {
				continue
			}
			c.step(m, busy)
		}
	}
}

// step lets a replica do something.
func (c *chaos) step(m *member, busy int) {
	for range c.random.IntN(1 + busy) {
		c.request(m)
	}
	switch {
	case c.one(400):
		c.refund(m)
	case c.one(400):
		l := c.random.IntN(len(c.item.limits))
		n := c.random.Int64N(5000)
		m.holder.Charge(c.now, l, n, m.holder.Overdraft(l, c.now, -100_000))
	case c.one(300):
		view, slots := c.item.image(m.index)
		c.reply(m, view, slots) // a read
	case c.one(4000):
		c.pause(m)
	case c.one(6000):
		m.holder.Wish(c.now)
	case c.one(8000):
		m.holder.Recall()
	}
	if m.holder.State() == lease.None && c.one(500) { // after a recall, and now and then a new process
		m.holder, m.plan = lease.New(c.item.limits, limiter.LeasePolicy{}, m.holder.Sequence()), nil
	}
	c.reap(m)
	if m.plan == nil && (m.holder.Due(c.now) || c.now >= m.holder.Wake()) {
		c.ask(m)
	}
}

// draws are those of a request, mostly small.
func (c *chaos) draws() []lease.Draw {
	var draws []lease.Draw
	for l, p := range c.item.limits {
		n := 1 + c.random.Int64N(3000)
		if c.one(200) {
			n = c.random.Int64N(p.Capacity)
		}
		draws = append(draws, lease.Draw{Limit: l, Need: n, Take: n})
	}
	return draws
}

func (c *chaos) request(m *member) {
	draws := c.draws()
	m.holder.Count(c.now, draws)
	switch m.holder.Take(c.now, 15, draws) {
	case lease.Admitted:
		if !m.holder.Alive(c.clock(m)) {
			c.ended++
			return
		}
		c.local++
		for _, d := range draws {
			c.book(d.Limit, c.now, d.Take)
			m.admitted[d.Limit] += d.Take
		}
	case lease.Centre:
		c.keep(m, draws)
	case lease.Denied, lease.Wait, lease.Pull:
	}
}

// keep asks the centre for what the lease does not have of a request.
func (c *chaos) keep(m *member, draws []lease.Draw) {
	part, rest, ok := m.holder.Keep(c.now, draws)
	if !ok {
		rest = make([]int64, len(c.item.limits))
		for _, d := range draws {
			rest[d.Limit] = d.Take
		}
	}
	planned, epoch, holder := c.now, m.view.Version, m.holder
	c.at(c.delay(), func() {
		granted := c.item.takeAll(epoch, planned, rest)
		c.at(c.delay(), func() {
			stands := holder.Settle(c.now, part, granted)
			if ok && !holder.Alive(c.clock(m)) {
				stands = false
			}
			if !granted || ok && !stands { // what the centre gave stays taken
				return
			}
			if ok {
				c.large++
			}
			for _, d := range draws {
				if rest[d.Limit] > 0 {
					c.book(d.Limit, planned, rest[d.Limit])
				}
				if d.Take > rest[d.Limit] {
					c.book(d.Limit, c.now, d.Take-rest[d.Limit])
				}
			}
		})
	})
}

func (c *chaos) refund(m *member) {
	l := c.random.IntN(len(c.item.limits))
	n := m.admitted[l] / 4
	rest := m.holder.Refund(c.now, l, n)
	m.admitted[l] -= n - rest
	c.book(l, c.now, rest-n)
}

func (c *chaos) book(l int, at, amount int64) {
	if amount != 0 {
		c.booked[l] = append(c.booked[l], booking{at, amount})
	}
}

// ask sends the lease write that is due, if one is.
func (c *chaos) ask(m *member) {
	holder := m.holder
	p, ok := holder.Ask(c.now, c.clock(m), c.random.Float64())
	if !ok {
		return
	}
	if c.one(50) {
		holder.Failed(c.now, p, false) // it is not sent
		return
	}
	m.plan = p
	fate := c.random.IntN(20)
	if fate == 0 { // lost on its way
		c.unanswered(m, holder, p)
		return
	}
	c.at(c.delay(), func() {
		c.item.apply(m.index, p)
		view, slots := c.item.image(m.index)
		if fate == 1 { // the reply is lost
			c.unanswered(m, holder, p)
			return
		}
		c.at(c.delay(), func() {
			c.reply(m, view, slots)
			if m.plan == p {
				m.plan = nil
			}
		})
	})
}

func (c *chaos) unanswered(m *member, holder *lease.Holder, p *lease.Plan) {
	c.unknown++
	c.at(100, func() {
		holder.Failed(c.now, p, true)
		if m.plan == p {
			m.plan = nil
		}
	})
}

// reply has an image arrive after a pause, or at once.
func (c *chaos) reply(m *member, view lease.View, slots []lease.SlotID) {
	if m.paused > c.now {
		c.at(m.paused-c.now, func() { c.reply(m, view, slots) })
		return
	}
	if m.view.Version.Serial >= view.Version.Serial {
		return
	}
	m.view = view
	m.holder.Seen(c.now, c.clock(m), view)
	m.watch.Seen(c.clock(m).Mono, slots)
}

// pause stops a replica: its clocks go on, or one of them stands still, or both do and the
// era of the clock changes.
func (c *chaos) pause(m *member) {
	ms := c.random.Int64N(3 * lease.Term)
	m.paused = c.now + ms
	switch c.random.IntN(4) {
	case 0:
		m.stood += ms
	case 1:
		m.behind += ms
	case 2:
		m.stood += ms
		m.behind += ms
		m.era++
	}
}

// reap frees a slot that was unchanged for long enough, by a write on the version seen.
func (c *chaos) reap(m *member) {
	id, ok := m.watch.Dead(c.clock(m).Mono)
	if !ok || m.reaping {
		return
	}
	m.reaping = true
	version, planned := m.view.Version, c.now
	c.at(c.delay(), func() {
		m.reaping = false
		if c.item.version == version {
			c.item.reap(int(id), planned)
			c.reaped++
		}
		view, slots := c.item.image(m.index)
		c.reply(m, view, slots)
	})
}

// over returns the millitokens that a window has beyond the capacity and its refill.
func (c *chaos) over() (limit int, worst int64) {
	for l, p := range c.item.limits {
		all := c.booked[l]
		sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
		b := tokenbucket.Full(p, all[0].at)
		for _, x := range all {
			b = b.ForceConsume(p, x.amount, x.at)
			if -b.Tokens > worst {
				limit, worst = l, -b.Tokens
			}
		}
	}
	return limit, worst
}

func TestNoWindowHasMoreThanTheLimit(t *testing.T) {
	runs, total := 60, chaos{}
	if testing.Short() {
		runs = 15
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newChaos(uint64(seed))
			c.run(40_000)
			if l, over := c.over(); over > 0 {
				t.Errorf("limit %d: %d millitokens over", l, over)
			}
			total.local += c.local
			total.ended += c.ended
			total.reaped += c.reaped
			total.large += c.large
			total.unknown += c.unknown
		})
	}
	t.Logf("%d admitted by leases, %d leases found over, %d reaped, %d large requests, %d unknown outcomes", total.local, total.ended, total.reaped, total.large, total.unknown)
	if total.local < 1000*runs || total.ended == 0 || total.reaped == 0 || total.large == 0 || total.unknown == 0 {
		t.Error("the runs do not reach all that they are to test")
	}
}
