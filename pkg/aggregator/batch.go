package aggregator

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Batch sums records of one shard of a stream up until they are flushed. It is for one goroutine.
type Batch struct {
	shard   string
	windows []limiter.UsageWindow
	keep    func(limiter.UsageWindow) time.Duration
	parts   map[Snapshot]*part
	order   []Snapshot // in which the parts began
	letters letterBox

	misdated int
}

// NewBatch returns an empty batch of a shard for windows. A snapshot is kept as long after the end of its window
// as keep says, 0 = for good; nil = as limiter.UsageWindow.Retention says.
func NewBatch(shard string, windows []limiter.UsageWindow, keep func(limiter.UsageWindow) time.Duration) *Batch {
	if keep == nil {
		keep = limiter.UsageWindow.Retention
	}
	return &Batch{shard: shard, windows: windows, keep: keep, parts: make(map[Snapshot]*part)}
}

// Add adds a record, at its place among those that the batch has, and once. It reports whether there is something to
// write for its sake.
func (b *Batch) Add(r *Record) bool {
	if r.Problem != nil {
		b.letters.add(Letter{b.shard, r.Sequence, r.Key, r.Problem, nil})
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
		b.letters.add(Letter{b.shard, r.Sequence, r.Key, errNoTime, nil})
		return false
	}
	for _, w := range b.windows {
		s := Snapshot{Bucket: r.Bucket, Window: w, Start: w.Start(at)}
		p := b.parts[s]
		if p == nil {
			p = b.begin(s, r.Names)
		}
		p.add(counted{r.Sequence, r.Key, used})
	}
	return true
}

// begin adds a part for a snapshot.
func (b *Batch) begin(s Snapshot, names Names) *part {
	p := &part{shard: b.shard, of: s, names: names}
	if age := b.keep(s.Window); age > 0 {
		p.expires = s.Window.End(s.Start).Add(age)
	}
	b.parts[s] = p
	b.order = append(b.order, s)
	return p
}

// Empty reports whether there is nothing to write.
func (b *Batch) Empty() bool { return len(b.parts) == 0 }

// Letters returns the records that could not be counted, each once, and forgets them.
func (b *Batch) Letters() []Letter {
	letters := b.letters.take()
	if b.Empty() {
		b.letters = letterBox{}
	}
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

// Flush makes one write for each snapshot, and more where a snapshot has some of the records. Parts
// that failed stay in the batch, and the next flush tries them again. The error is that of the first
// record that is not counted. A record that can never be applied becomes a letter, and the others of
// its snapshot are written without it. No write begins when ctx is done.
func (b *Batch) Flush(ctx context.Context, to Snapshots) (done Flushed, err error) {
	outcomes := make([]outcome, len(b.order))
	var g errgroup.Group
	g.SetLimit(flushers)
	for i, s := range b.order {
		g.Go(func() error {
			outcomes[i] = b.parts[s].write(ctx, to)
			return nil
		})
	}
	_ = g.Wait() // the outcomes have the errors
	left := b.order[:0]
	for i, s := range b.order {
		o := &outcomes[i]
		done.Written += o.written
		done.Repeated += o.repeated
		b.letters.add(o.letters...)
		if o.err == nil { // rule: a part that failed is written again
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
