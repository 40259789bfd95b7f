package ratemodel

import "slices"

// deliver brings one message a step on.
func (m *model) deliver() {
	if len(m.net) == 0 {
		return
	}
	i := m.rng.IntN(len(m.net))
	msg := m.net[i]
	if msg.reply {
		m.deliverReply(i)
		return
	}
	slow := m.chance(6) || msg.write.op == nil && !m.chance(4)
	if m.shape.late && slow && m.now-msg.sent < 200 {
		return
	}
	m.net = append(m.net[:i], m.net[i+1:]...)
	if m.shape.lose && m.chance(25) {
		m.tracef("lost on the way: %s %d", msg.write.kind, msg.write.id)
		return
	}
	m.commit(msg)
}

// deliverReply brings a reply to the life of the replica that waits for it.
func (m *model) deliverReply(i int) {
	msg := m.net[i]
	r := m.reps[msg.from]
	if msg.due > m.now || r.asleep > m.now {
		return
	}
	m.net = append(m.net[:i], m.net[i+1:]...)
	if r.life == msg.life {
		r.receive(msg)
	}
}

// commit has the store apply a write, and sends the reply.
func (m *model) commit(msg *message) {
	it := &m.items[msg.write.item]
	before := *it
	msg.applied = msg.write.apply(it)
	if msg.applied {
		m.commits++
		m.book.record(msg.write, &before, it)
	}
	m.tracef("store: %s id %d of r%d applied=%v: %s", msg.write.kind, msg.write.id, msg.from, msg.applied, describe(it))
	if msg.lost {
		return
	}
	back := *msg
	back.reply, back.image = true, *it
	back.due = m.now + m.upTo(2)
	if m.chance(10) {
		back.due += m.upTo(30)
	}
	m.net = append(m.net, &back)
}

// land delivers every message at once, or the writes of one kind only.
func (m *model) land(kinds ...kind) {
	for {
		i := slices.IndexFunc(m.net, func(msg *message) bool {
			return msg.reply || len(kinds) == 0 || slices.Contains(kinds, msg.write.kind)
		})
		if i < 0 {
			return
		}
		msg := m.net[i]
		m.net = slices.Delete(m.net, i, i+1)
		switch r := m.reps[msg.from]; {
		case !msg.reply:
			m.commit(msg)
		case r.life == msg.life && r.asleep <= m.now:
			r.receive(msg)
		case r.life == msg.life: // it finds the state when it is evaluated
		}
	}
}

// landOf delivers the writes and the replies of one replica.
func (m *model) landOf(r actor) {
	for i := 0; i < len(m.net); {
		msg := m.net[i]
		if msg.from != r.n {
			i++
			continue
		}
		m.net = slices.Delete(m.net, i, i+1)
		if msg.reply {
			r.receive(msg)
		} else {
			m.commit(msg)
		}
		i = 0
	}
}

// reach delivers the writes that one replica sent, and no reply.
func (m *model) reach(r actor) {
	for i := 0; i < len(m.net); {
		msg := m.net[i]
		if msg.reply || msg.from != r.n {
			i++
			continue
		}
		m.net = slices.Delete(m.net, i, i+1)
		m.commit(msg)
	}
}
