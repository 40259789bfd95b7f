package lane

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// read is a read of the item.
type read struct {
	copies

	by *sender
}

// read returns a read of the item. The lane is locked.
func (l *sender) read(now time.Time) message {
	return l.launch(&read{by: l}, now)
}

func (m *read) send(ctx context.Context) (reply, error) { return m.by.get(ctx, m.by.key) }

func (m *read) conclude(got reply, err error, now time.Time) (again bool) {
	l := m.by
	if err != nil {
		err = awsdb.TranslateRead(err)
		if l.rereads(&m.copies, err, now) {
			return true
		}
		l.arrived(m)
		l.lease.missed(missedRead, now)
		l.closer.refuse(err, now)
		return false
	}
	image, err := l.image(m, got, now)
	if err != nil {
		l.closer.refuse(err, now)
		return false
	}
	l.lane.sees(image, &m.copies, now)
	return false
}

// readTries bounds the copies of a read.
const readTries = 12

// rereads reports whether a read that failed is sent again.
func (l *sender) rereads(c *copies, err error, now time.Time) bool {
	return awsdb.Passes(err) && now.Before(c.until) && c.tries < readTries && l.host.stopped.Err() == nil
}
