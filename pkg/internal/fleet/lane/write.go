package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// writer makes the writes of requests.
type writer struct {
	*item
	*requests
	*traffic

	view   *view
	turns  *turns
	finder *finder
	closer *closer
	sender *sender
}

// write is a write of requests. It is sent until its outcome is known. Where that stays unknown for long,
// or no request needs it any more, the item is read for it.
type write struct {
	batch

	by *writer
}

// write returns the write of a stage, which holds some requests. The lane is locked.
func (l *writer) write(stage *plan.Stage, actors []*Request, now time.Time) message {
	m := &write{by: l, batch: batch{
		id: plan.ID{Slot: l.host.self.slotOn(l.view.state), Channel: l.channels.next(l.out, now), Write: l.host.self.next()}, actors: actors, // rule: a write is in a free channel
		solo: len(l.out) == 0,
	}}
	m.write = stage.Write(m.id, l.sender.cost())
	if m.write == nil { // nothing changes after all
		l.queue = append(actors, l.queue...)
		return l.sender.read(now)
	}
	for _, r := range m.actors {
		l.closer.happen(r, written)
		m.books = m.books || r.Books()
	}
	l.pace.Sent(now)
	return l.sender.launch(m, now)
}

func (m *write) send(ctx context.Context) (reply, error) {
	if m.outcome == sought {
		return m.by.sender.get(ctx, m.by.key)
	}
	return m.by.sender.apply(ctx, m.write, !m.solo && !m.write.Exact())
}

func (m *write) conclude(got reply, err error, now time.Time) (again bool) {
	l := m.by
	switch {
	case err != nil && m.outcome == sought:
		return m.unread(awsdb.TranslateRead(err), now)
	case err != nil:
		return m.unanswered(awsdb.Translate(err), now)
	}
	image, err := l.sender.image(m, got, now)
	if err != nil {
		l.closer.failed(m.actors, unreadable(got, err), now)
		return false
	}
	m.came(image, got.refused, now)
	return false
}

// came takes in an image of the item.
func (m *write) came(image *schema.Bucket, refused bool, now time.Time) {
	l := m.by
	l.sender.lane.sees(image, &m.copies, now)
	l.turns.ended(m.write, image, refused)
	switch {
	case m.outcome == sought, refused && (m.outcome == unknown || m.shown(image)): // a copy can be refused since the write was applied // rule: a copy that is refused does not tell that no copy was applied
		m.resolve(image, now)
	case refused:
		l.finder.watch(&m.batch, image)
		l.closer.again(&m.batch, false)
	default:
		l.closer.applied(&m.batch, image)
	}
}

// resolve ends a write that was sent more than once, by an image that refused a copy or
// was read.
func (m *write) resolve(image *schema.Bucket, now time.Time) {
	l := m.by
	switch m.outcomeIn(image) {
	case plan.Landed:
		l.closer.applied(&m.batch, image)
	case plan.Dead:
		l.closer.again(&m.batch, false)
	case plan.Open, plan.Lost:
		l.closer.dropBookings(&m.batch, now) // rule: a charge in doubt is not booked again
	}
}

// unread takes in that the item was not read to find the outcome.
func (m *write) unread(err error, now time.Time) (again bool) {
	l := m.by
	if l.sender.rereads(&m.copies, err, now) {
		return true
	}
	l.sender.arrived(m)
	l.closer.failed(m.actors, fmt.Errorf("%w: %w", errDropped, err), now)
	return false
}

// unknownPatience is how long a write of unknown outcome is sent again.
const unknownPatience = time.Minute

// unanswered takes in that no reply came, or one that says that it was not applied.
func (m *write) unanswered(err error, now time.Time) (again bool) {
	l, lost := m.by, errors.Is(err, limiter.ErrUncertain)
	if lost && m.outcome == awaitsReply {
		m.outcome, m.until = unknown, now.Add(unknownPatience)
	}
	if m.outcome == awaitsReply {
		m.notApplied(err, now)
		return false
	}
	outage := errors.Is(err, awsdb.ErrOutage)
	if outage {
		l.closer.refuse(err, now) // only those that the write is for wait for its outcome
	}
	if l.host.stopped.Err() == nil && (lost || outage || awsdb.Retryable(err)) {
		if !m.wanted() || !now.Before(m.until) {
			m.outcome, m.tries, m.until = sought, 0, now.Add(l.host.cfg.Budget)
		}
		return true
	}
	l.sender.arrived(m)
	if !lost {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	l.closer.failed(m.actors, err, now)
	return false
}

// notApplied ends a write that was certainly not applied.
func (m *write) notApplied(err error, now time.Time) {
	l := m.by
	l.sender.arrived(m)
	if !awsdb.Retryable(err) {
		l.closer.failed(m.actors, err, now)
		return
	}
	l.pace.Throttled(now, l.host.cfg.Loop.Draw)
	l.finder.watch(&m.batch, nil)
	l.closer.again(&m.batch, false)
}
