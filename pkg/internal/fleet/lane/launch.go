package lane

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
)

// sender makes the messages of a lane, and sends them.
type sender struct {
	*item
	*requests
	*traffic
	*wakes

	view *view
}

// launch notes that a message leaves. The lane is locked.
func (l sender) launch(f *flight, now time.Time) *flight {
	l.events++
	f.solo = len(l.out) == 0
	f.asked, f.at, f.sent, f.until = l.events, l.view.now, now, now.Add(l.host.cfg.Budget)
	f.within = l.pace.Attempt(l.host.cfg.Attempt)
	l.out = append(l.out, f)
	l.reckon()
	return f
}

// read returns a read of the item. The lane is locked.
func (l sender) read(now time.Time) *flight {
	return l.launch(&flight{}, now)
}

// write returns the write of a stage, which holds some requests. The lane is locked.
func (l sender) write(stage *plan.Stage, actors []*Request, now time.Time) *flight {
	f := &flight{id: plan.ID{Slot: l.host.self.slotOn(l.view.state), Channel: l.channels.next(l.out, now), Write: l.host.self.next()}, actors: actors}
	f.write = stage.Write(f.id, l.cost())
	if f.write == nil { // nothing changes after all
		l.queue = append(actors, l.queue...)
		return l.read(now)
	}
	f.exact = f.write.Exact()
	for _, r := range f.actors {
		r.phase = sent
		f.books = f.books || r.Books()
	}
	l.pace.Sent(now)
	return l.launch(f, now)
}

// cost is how many write units a write of the lane counts: its own, and those of writes that
// were refused.
func (l sender) cost() int64 { return l.view.units() + l.unpaid }

// land takes a message out of those under way. Its effect counts no more where no state has
// it: the state of its reply can be older than the last one, and then it is not used.
func (l sender) land(f *flight) {
	l.out = slices.DeleteFunc(l.out, func(o *flight) bool { return o == f })
	l.reckon()
	l.running = true // the goroutine of the message steps the lane next
}

// reckon brings the state that the next write is planned on up to date.
func (l sender) reckon() {
	v := l.view
	v.head = v.state
	for _, f := range l.out {
		switch {
		case f.write == nil:
		case v.head == nil, f.exact:
			v.head = f.write.After()
		case !f.shown(v.state):
			v.head = f.write.On(v.head)
		}
	}
}
