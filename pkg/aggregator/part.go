package aggregator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// part are the records of one snapshot, in order.
type part struct {
	shard   string // of the stream
	of      Snapshot
	names   Names
	expires time.Time // zero = never
	records []counted
	doubled int // records that came twice
}

// add adds a record where its sequence number belongs, unless it is there. The position of a
// snapshot is the last number of a write, so a record behind it would never be counted.
func (p *part) add(r counted) {
	i := len(p.records)
	if i > 0 && r.sequence.Compare(p.records[i-1].sequence) <= 0 {
		var found bool
		i, found = slices.BinarySearchFunc(p.records, r.sequence, func(r counted, of Sequence) int { return r.sequence.Compare(of) })
		if found {
			p.doubled++
			return
		}
	}
	p.records = slices.Insert(p.records, i, r)
}

// counted is a record that consumed something.
type counted struct {
	sequence Sequence
	key      string
	used     map[string]int64
}

// outcome is that of one part.
type outcome struct {
	written, repeated int
	letters           []Letter
	err               error // nil = nothing is left
}

// maxRefused is how many writes of a part may be refused for good before the records that are left become letters.
// It bounds the time that a snapshot takes to which nothing can be added. One record among thousands takes
// about 30 writes.
const maxRefused = 1000

// write writes the records, as many at once as are accepted. A write that is refused for good is tried with half
// of its records: a record that cannot be applied becomes a letter alone. Records that are left with an error can be
// written later.
func (p *part) write(ctx context.Context, to Snapshots) (o outcome) {
	o.repeated, p.doubled = p.doubled, 0
	for n, refused := len(p.records), 0; len(p.records) > 0; {
		if o.err = ctx.Err(); o.err != nil {
			return o
		}
		n = min(n, len(p.records))
		has, err := to.Add(ctx, p.change(n))
		switch {
		case errors.Is(err, limiter.ErrInvalid):
			refused++
			switch {
			case refused == maxRefused:
				o.letters = append(o.letters, p.bury(len(p.records), err)...)
			case n == 1:
				o.letters = append(o.letters, p.bury(1, err)...)
			default:
				n /= 2
			}
		case err != nil:
			o.err = err
			return o
		case has == "":
			o.written++
			p.records = p.records[n:]
			n *= 2
		default:
			before := len(p.records)
			p.records = slices.DeleteFunc(p.records, func(r counted) bool { return r.sequence.Compare(has) <= 0 })
			o.repeated += before - len(p.records)
		}
	}
	return o
}

// bury removes the first n records and makes letters of them.
func (p *part) bury(n int, problem error) []Letter {
	letters := make([]Letter, n)
	for i, r := range p.records[:n] {
		letters[i] = Letter{p.shard, r.sequence, r.key, problem, []limiter.UsageWindow{p.of.Window}}
	}
	p.records = p.records[n:]
	return letters
}

// change sums the first n records up.
func (p *part) change(n int) *Change {
	c := &Change{
		Snapshot: p.of, Names: p.names, Shard: p.shard, First: p.records[0].sequence, Last: p.records[n-1].sequence,
		Used: make(map[string]int64), Events: int64(n), Expires: p.expires,
	}
	for _, r := range p.records[:n] {
		for limit, n := range r.used {
			c.Used[limit] = limiter.SaturatingSum(c.Used[limit], n)
		}
	}
	return c
}
