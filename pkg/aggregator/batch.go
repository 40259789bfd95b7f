package aggregator

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Snapshot names a usage snapshot.
type Snapshot struct {
	Bucket Bucket
	Window limiter.UsageWindow
	Start  time.Time // UTC
}

// Change is the gain of a snapshot from records of one shard of a stream.
type Change struct {
	Snapshot    Snapshot
	Names       Names
	Shard       string   // of the stream
	First, Last Sequence // of the records
	Used        map[string]int64
	Events      int64     // number of records
	Expires     time.Time // of the snapshot; zero = never
}

// Snapshots keeps usage snapshots.
type Snapshots interface {
	// Add applies a change whole, or not at all where the snapshot has a position in the shard
	// that is not below c.First: then it returns that position, and else "". An error wraps
	// limiter.ErrInvalid where the change can never be applied. Else its outcome may be unknown,
	// and the same change may be sent again.
	Add(ctx context.Context, c *Change) (has Sequence, err error)
}

// Letter is a record that could not be counted.
type Letter struct {
	Shard    string
	Sequence Sequence
	Key      string // of the item
	Problem  error
}

// Batch sums records of one shard of a stream up until they are flushed. It is for one goroutine.
type Batch struct {
	shard   string
	windows []limiter.UsageWindow
	keep    func(limiter.UsageWindow) time.Duration
	parts   map[Snapshot]*part
	order   []Snapshot // in which the parts began
	letters []Letter

	misdated int
}

// part are the records of one snapshot, in order.
type part struct {
	names   Names
	records []counted
}

type counted struct {
	sequence Sequence
	key      string
	used     map[string]int64
}

// NewBatch returns an empty batch of a shard for windows. A snapshot is kept as long after the end of its window
// as keep says, 0 = for good; nil = as limiter.UsageWindow.Retention says.
func NewBatch(shard string, windows []limiter.UsageWindow, keep func(limiter.UsageWindow) time.Duration) *Batch {
	if keep == nil {
		keep = limiter.UsageWindow.Retention
	}
	return &Batch{shard: shard, windows: windows, keep: keep, parts: make(map[Snapshot]*part)}
}

// Add adds a record behind those that the batch has. It reports whether there is something to
// write for its sake.
func (b *Batch) Add(r *Record) bool {
	if r.Problem != nil {
		b.letters = append(b.letters, Letter{b.shard, r.Sequence, r.Key, r.Problem})
		return false
	}
	if r.Other {
		return false
	}
	used := r.used()
	if len(used) == 0 {
		return false
	}
	at, misdated, ok := r.at()
	if misdated {
		b.misdated++
	}
	if !ok {
		b.letters = append(b.letters, Letter{b.shard, r.Sequence, r.Key, errNoTime})
		return false
	}
	for _, w := range b.windows {
		s := Snapshot{Bucket: r.Bucket, Window: w, Start: w.Start(at)}
		p := b.parts[s]
		if p == nil {
			p = &part{names: r.Names}
			b.parts[s] = p
			b.order = append(b.order, s)
		}
		p.records = append(p.records, counted{r.Sequence, r.Key, used})
	}
	return true
}

// Empty reports whether there is nothing to write.
func (b *Batch) Empty() bool { return len(b.parts) == 0 }

// Letters returns the records that could not be counted, and forgets them.
func (b *Batch) Letters() []Letter {
	letters := b.letters
	b.letters = nil
	return letters
}

// Misdated returns how many records were booked to the time of their write, since that of their decision cannot
// be right, and forgets the number.
func (b *Batch) Misdated() int {
	n := b.misdated
	b.misdated = 0
	return n
}

// Flushed is the outcome of a flush.
type Flushed struct {
	Written  int      // snapshots
	Repeated int      // records that their snapshot had
	Failed   Sequence // the first record that is not counted yet; "" = all are
}

// flushers is how many snapshots a flush writes at once.
const flushers = 16

// Flush makes one write for each snapshot, and more where a snapshot has some of the records.
// Parts that failed stay in the batch, and the next flush tries them again; the error is that
// of the first record that is not counted. A change that can never be applied becomes letters. No write begins
// when ctx is done.
func (b *Batch) Flush(ctx context.Context, to Snapshots) (done Flushed, err error) {
	outcomes := make([]outcome, len(b.order))
	var g errgroup.Group
	g.SetLimit(flushers)
	for i, s := range b.order {
		g.Go(func() error {
			outcomes[i] = b.write(ctx, to, s)
			return nil
		})
	}
	_ = g.Wait() // the outcomes have the errors
	left := b.order[:0]
	for i, s := range b.order {
		o := &outcomes[i]
		done.Written += o.written
		done.Repeated += o.repeated
		b.letters = append(b.letters, o.letters...)
		if o.err == nil {
			delete(b.parts, s)
			continue
		}
		left = append(left, s)
		if first := b.parts[s].records[0].sequence; done.Failed == "" || first.Compare(done.Failed) < 0 {
			done.Failed, err = first, o.err
		}
	}
	b.order = left
	return done, err
}

// outcome is that of one part.
type outcome struct {
	written, repeated int
	letters           []Letter
	err               error
}

// write writes one part. It changes nothing of the batch but the part.
func (b *Batch) write(ctx context.Context, to Snapshots, s Snapshot) (o outcome) {
	p := b.parts[s]
	for len(p.records) > 0 {
		if o.err = ctx.Err(); o.err != nil {
			return o
		}
		has, err := to.Add(ctx, b.change(s, p))
		switch {
		case errors.Is(err, limiter.ErrInvalid):
			for _, r := range p.records {
				o.letters = append(o.letters, Letter{b.shard, r.sequence, r.key, err})
			}
			return o
		case err != nil:
			o.err = err
			return o
		case has == "":
			o.written++
			return o
		}
		before := len(p.records)
		p.records = slices.DeleteFunc(p.records, func(r counted) bool { return r.sequence.Compare(has) <= 0 })
		o.repeated += before - len(p.records)
	}
	return o
}

// change sums the records of a part up.
func (b *Batch) change(s Snapshot, p *part) *Change {
	c := &Change{
		Snapshot: s, Names: p.names, Shard: b.shard, First: p.records[0].sequence, Last: p.records[len(p.records)-1].sequence,
		Used: make(map[string]int64), Events: int64(len(p.records)),
	}
	for _, r := range p.records {
		for limit, n := range r.used {
			c.Used[limit] = limiter.SaturatingSum(c.Used[limit], n)
		}
	}
	if age := b.keep(s.Window); age > 0 {
		c.Expires = s.Window.End(s.Start).Add(age)
	}
	return c
}
