package lane

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// sender sends the messages of a lane, and takes in their replies.
type sender struct {
	*item
	*traffic
	*wakes

	view   *view
	closer *closer
	lease  leasing
	lane   viewer
}

// launch notes that a message leaves. The lane is locked.
func (l *sender) launch(m message, now time.Time) message {
	l.events++
	c := m.core()
	c.asked, c.at, c.sent, c.until = l.events, l.view.now, now, now.Add(l.host.cfg.Budget)
	c.within = l.pace.Attempt(l.host.cfg.Attempt)
	l.out = append(l.out, m)
	l.reckon()
	return m
}

// cost is how many write units a write of the lane counts: its own, and those of writes that
// were refused.
func (l *sender) cost() int64 { return l.view.units() + l.unpaid }

// newID returns the id of a write that is for no request, or is exact.
func (l *sender) newID() plan.ID {
	return plan.ID{Slot: l.host.self.slotOn(l.view.state), Write: l.host.self.next()}
}

// arrived takes a message out of those under way. Its effect counts no more where no state has
// it: the state of its reply can be older than the last one, and then it is not used.
func (l *sender) arrived(m message) {
	l.out = slices.DeleteFunc(l.out, func(o message) bool { return o == m })
	l.reckon()
	l.running = true // the goroutine of the message steps the lane next
}

// reckon brings the state that the next write is planned on up to date.
func (l *sender) reckon() {
	v := l.view
	v.head = v.state
	for _, m := range l.out {
		v.head = m.after(v.head, v.state)
	}
}

// image takes a message out of those under way, and returns the item that its reply has; nil where there
// is none.
func (l *sender) image(m message, got reply, now time.Time) (*schema.Bucket, error) {
	l.pace.Reply(now.Sub(m.core().sent))
	var known *limiter.Limits
	if l.view.state != nil {
		known = l.view.state.Limits
	}
	image := got.left
	var err error
	if len(got.item) > 0 {
		image, err = schema.ParseBucket(l.host.cfg.Table, l.key, got.item, known)
	}
	l.arrived(m)
	if err != nil {
		l.view.known = l.view.known && got.refused
		return nil, err
	}
	return image, nil
}

// unreadable is the error of a write whose reply cannot be read.
func unreadable(got reply, err error) error {
	if got.refused {
		return err
	}
	return fmt.Errorf("%w: %w: %w", limiter.ErrUncertain, errUnreadable, err)
}

// concludeOnce takes in the reply to a message that is sent once, or its error.
func (l *sender) concludeOnce(m sentOnce, got reply, err error, now time.Time) {
	if err != nil {
		err = awsdb.Translate(err)
		l.arrived(m)
		m.lost(errors.Is(err, limiter.ErrUncertain), err, now)
		if errors.Is(err, awsdb.ErrOutage) {
			l.closer.refuse(err, now)
		}
		return
	}
	image, err := l.image(m, got, now)
	if err != nil {
		err = unreadable(got, err)
		m.lost(true, err, now)
		l.closer.failed(nil, err, now)
		return
	}
	m.came(image, got.refused, now)
}

// counted notes whether the item counted the write units of a write that is sent once.
func (l *sender) counted(refused bool) {
	if refused {
		l.unpaid += l.view.units()
	} else {
		l.unpaid = 0
	}
}
