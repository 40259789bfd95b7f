package aggregator

import (
	"log/slog"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Letter is a record that could not be counted.
type Letter struct {
	Shard    string
	Sequence Sequence
	Key      string // of the item
	Problem  error
	Refused  []limiter.UsageWindow // windows whose snapshots refused the record; nil = it is in no snapshot
}

// Log writes the letter to a log: the key of the item, and nothing else of it.
func (l *Letter) Log(log *slog.Logger) {
	with := []any{"key", l.Key, "shard", l.Shard, "sequence", string(l.Sequence), "error", l.Problem}
	if l.Refused != nil {
		with = append(with, "windows", l.Refused)
	}
	log.Error("a record of the stream cannot be counted", with...)
}

// letterBox has one letter for each record.
type letterBox struct {
	all      []*Letter
	bySource map[Sequence]*Letter // also those that were taken
}

// add adds letters of records. A record that has a letter gets no other: its letter has the windows of both, where it
// was not taken before.
func (b *letterBox) add(letters ...Letter) {
	for _, l := range letters {
		if has := b.bySource[l.Sequence]; has != nil && l.Sequence != "" {
			has.Refused = append(has.Refused, l.Refused...)
			continue
		}
		if b.bySource == nil {
			b.bySource = make(map[Sequence]*Letter)
		}
		b.bySource[l.Sequence] = &l
		b.all = append(b.all, &l)
	}
}

// take returns the letters in order of their addition, and forgets them.
func (b *letterBox) take() []Letter {
	letters := make([]Letter, len(b.all))
	for i, l := range b.all {
		letters[i] = *l
		letters[i].Refused = slices.Clone(l.Refused)
	}
	b.all = nil
	return letters
}
