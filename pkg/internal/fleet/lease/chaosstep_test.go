package lease_test

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// step lets a replica do something.
func (c *chaos) step(m *member, busy int) {
	for range c.random.IntN(1 + busy) {
		c.request(m)
	}
	switch {
	case c.one(400):
		c.refund(m)
	case c.one(401):
		l := c.random.IntN(len(c.item.limits))
		n := c.random.Int64N(5000)
		m.holder.Charge(c.now, l, n, m.holder.Overdraft(l, c.now, -100_000))
	case c.one(300):
		view, slots := c.item.image(m.index)
		c.reply(m, view, slots) // a read
	case c.one(4000):
		c.pause(m)
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
	draws := make([]lease.Draw, 0, len(c.item.limits))
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

// keep asks the centre for the part of a request that the lease does not have.
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
			if !granted || ok && !stands { // the part of the centre stays taken
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
		if m.stuck++; holder.Wake() > c.now {
			m.stuck = 0
		}
		c.stuck = max(c.stuck, m.stuck)
		return
	}
	m.stuck = 0
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
