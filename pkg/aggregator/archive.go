package aggregator

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"time"
)

// Archive keeps audit events for good.
type Archive interface {
	// Put writes an object whole, or replaces it. After an error it may be there or not.
	Put(ctx context.Context, name string, object []byte) error
}

// maxLines is how many bytes of lines are enough to be written.
const maxLines = 4 << 20

// Lines are audit events of one shard of a stream, up until they are in an archive. They
// are for one goroutine.
//
// An object has the events of one day in one flush, a line for each, compressed by gzip. Its
// name has the day of the events, and their place in the stream: a flush of the same records makes
// the same object. One that begins or ends elsewhere makes another, whose events have the
// same ids.
type Lines struct {
	shard  string
	encode func(*Expired) ([]byte, error)

	days    []*dayLines // in the order of their first records
	size    int         // of all lines, in bytes
	letters []Letter
}

// dayLines are the lines of an object.
type dayLines struct {
	day         time.Time
	first, last Sequence
	events      int
	text        bytes.Buffer
}

// NewLines returns lines of a shard. encode writes an event without line breaks.
func NewLines(shard string, encode func(*Expired) ([]byte, error)) *Lines {
	return &Lines{shard: shard, encode: encode}
}

// Add adds the event of a record, if it has one, behind those that are there. A record that cannot
// be read has none.
func (l *Lines) Add(r *Record) {
	if r.Expired == nil || r.Problem != nil {
		return
	}
	line, err := l.encode(r.Expired)
	if err != nil {
		l.letters = append(l.letters, Letter{l.shard, r.Sequence, r.Key, fmt.Errorf("the audit event cannot be archived: %w", err), nil})
		return
	}
	d := l.of(r)
	d.last = r.Sequence
	d.events++
	d.text.Write(line)
	d.text.WriteByte('\n')
	l.size += len(line) + 1
}

// of returns the lines of the day of a record's event; of the record where the event cannot be read.
func (l *Lines) of(r *Record) *dayLines {
	at := r.Expired.Event.Time
	if r.Expired.Problem != nil {
		at = r.Time
	}
	day := at.UTC().Truncate(24 * time.Hour)
	for _, d := range l.days {
		if d.day.Equal(day) {
			return d
		}
	}
	d := &dayLines{day: day, first: r.Sequence}
	l.days = append(l.days, d)
	return d
}

// Full reports whether the lines should be flushed before more are added.
func (l *Lines) Full() bool { return l.size >= maxLines }

// Letters returns the events that could not be encoded, and forgets them.
func (l *Lines) Letters() []Letter {
	letters := l.letters
	l.letters = nil
	return letters
}

// Archived is the outcome of a flush of lines.
type Archived struct {
	Events int      // that are in the archive now
	Failed Sequence // the first event that is not; "" = all are
}

// Flush puts the lines into an archive. After an error those that are not there yet stay, and the
// next flush tries them again.
func (l *Lines) Flush(ctx context.Context, to Archive) (done Archived, err error) {
	for len(l.days) > 0 {
		d := l.days[0]
		object, err := d.object()
		if err == nil {
			err = to.Put(ctx, d.name(l.shard), object)
		}
		if err != nil {
			done.Failed = d.first
			return done, err
		}
		done.Events += d.events
		l.size -= d.text.Len()
		l.days = l.days[1:]
	}
	return done, nil
}

// object returns the lines, compressed. The same lines give the same bytes.
func (d *dayLines) object() ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(d.text.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// name returns the name of the object of a shard.
func (d *dayLines) name(shard string) string {
	shard = strings.Map(func(r rune) rune {
		if r == '/' {
			return '-'
		}
		return r
	}, shard)
	return fmt.Sprintf("year=%04d/month=%02d/day=%02d/%s_%s_%s.jsonl.gz", d.day.Year(), d.day.Month(), d.day.Day(), shard, d.first, d.last)
}
