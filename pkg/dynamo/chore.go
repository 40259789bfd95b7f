package dynamo

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// chore is something that a lane does for its item, not for a request.
type chore struct {
	what  choreKind
	index int   // absorb: the shard that is no more
	found *view // absorb: as it was retired; nil = it is missing
	tries int
}

type choreKind uint8

const (
	choreLook   choreKind = iota // see how the shard is used
	choreRetire                  // merge it into its heir
	choreAbsorb                  // take in the other half of the last split
)

const (
	// choreTries is how often a chore is tried that others get in the way of.
	choreTries = 5
	// choreRest is how long a lane lets a chore be that failed.
	choreRest = time.Second
	// choreView is how old a view may be that another shard is made from: far younger
	// than a retired one stays, which tells that it was made before.
	choreView = time.Hour
)

// tend does one chore of a lane, if there is any, and reports whether it did. Chores
// take turns with requests, and never fail them.
func (s *Store) tend(l *lane) bool {
	if l.tended {
		l.tended = false
		return false
	}
	if len(l.todo) == 0 && (l.knows.view == nil || s.cfg.Now().Before(l.rest)) {
		return false
	}
	l.tended = s.tendOnce(l)
	return l.tended
}

func (s *Store) tendOnce(l *lane) bool {
	v := l.knows.view
	switch {
	case !l.knows.known:
		if _, err := s.sight(l); err != nil {
			l.todo = nil
		}
		return true
	case l.knows.clock.Doubtful:
		l.todo = nil // what time it is must be certain; they will come again
		return false
	case v != nil && v.shard.Moving && s.cfg.Now().Before(l.rest):
		l.todo = nil // a split is finished before anything else; they will come again
		return false
	case v != nil && v.shard.Moving && s.stale(l):
		_, _ = s.sight(l) // else the next will
	case v != nil && v.shard.Moving:
		s.finish(l)
	case len(l.todo) > 0:
		c := l.todo[0]
		l.todo = l.todo[1:]
		s.do(l, c)
	case l.load.busy && v.splits():
		l.load.busy = false
		if s.reshape(l, splitInput(s.cfg.Table, l.key, s.nextID(v), v, s.lately(l), s.cost(l))) {
			s.stats.splits.Add(1)
			s.finish(l)
		}
	default:
		return false
	}
	return true
}

// stale reports whether a lane's view is too old to make another shard from. Both
// readings of the clock count, and the era, as for a lease: the machine may have slept.
func (s *Store) stale(l *lane) bool {
	now := s.cfg.Now()
	return s.era() != l.era || now.Sub(l.seen) > choreView || now.Round(0).Sub(l.seen.Round(0)) > choreView
}

// sight reads the item anew.
func (s *Store) sight(l *lane) (*view, error) {
	image, err := s.read(l, awsdb.MayPass)
	if err == nil {
		s.saw(l, image)
	}
	return image, err
}

// do does a chore on an item that is known.
func (s *Store) do(l *lane, c chore) {
	v := l.knows.view
	switch {
	case v == nil:
	case c.what == choreLook:
		_, _ = s.sight(l) // else the next will
	case c.what == choreRetire:
		if v.settled() && l.knows.index >= max(v.shard.Level/2, 1) && l.load.sinceQuiet(s.cfg.Now()) >= s.cfg.Quiet &&
			s.reshape(l, retireInput(s.cfg.Table, l.key, v, s.lately(l))) {
			s.forward(l, nil) // its heir must not be split before it has what is here
		}
	case c.what == choreAbsorb:
		if !s.absorb(l, c) && c.tries < choreTries {
			c.tries++
			l.todo = append(l.todo, c)
		}
	}
}

// finish makes the other half of a split.
func (s *Store) finish(l *lane) {
	v := l.knows.view
	ctx, cancel := s.loop.Within(s.stopped, s.cfg.Attempt)
	defer cancel()
	_, err := s.client.PutItem(ctx, makeInput(s.cfg.Table, l.site, v, s.lately(l)))
	s.stats.wrote(err)
	if item, refused := awsdb.ConditionItem(err); refused {
		err = nil
		r := bucketReader{schema.NewReader(s.cfg.Table, l.site.shard(v.shard.Other().Index), item)}
		if made := r.Int(schema.AttrEpoch, 0, schema.MaxEpoch) >= v.shard.Other().Epoch; r.Fault != nil || !made {
			err = errors.Join(errors.New("another item is in the place of a new shard"), r.Fault)
		}
	}
	if err != nil {
		s.cfg.Logger.Warn("a bucket's new shard is not made yet", slog.String("item", l.key.String()), slog.Any("error", err))
		l.rest = s.cfg.Now().Add(choreRest)
		return
	}
	s.reshape(l, clearInput(s.cfg.Table, l.key, v))
}

// absorb takes in the other half of a lane's last split, when it is retired or
// gone. It reports whether there is no more to do.
func (s *Store) absorb(l *lane, c chore) bool {
	v, found := l.knows.view, c.found
	if !v.settled() || !v.shard.Sharded() || v.shard.Other().Index != c.index {
		return true
	}
	if found == nil { // only what is missing after the view of its heir is missing for good
		other := lane{key: l.site.shard(c.index)}
		var err error
		if found, err = s.read(&other, awsdb.MayPass); err != nil {
			return false
		}
	}
	if found != nil && (!found.shard.Retired || found.shard.Birth != v.shard.Other().Birth) {
		return true
	}
	if found != nil && found.version.Newer(l.knows.version()) {
		p := plan{units: s.cost(l), stage: newStage(v.adopt(found.limits, found.version.Generation, s.lately(l)), s.lately(l))}
		p.stage.swap = v
		s.reshape(l, swapInput(s.cfg.Table, l.key, s.nextID(v), &p))
		return false
	}
	if found != nil && found.version.Hash != v.version.Hash {
		found = found.adopt(v.limits, v.version.Generation, found.refilled)
	}
	if !s.reshape(l, absorbInput(s.cfg.Table, l.key, s.nextID(v), v, found, s.lately(l))) {
		return false
	}
	s.stats.merges.Add(1)
	return true
}

// reshape sends a write that changes what the item is, once, and reports whether it
// was applied. When that is not known the item is read before anything else.
func (s *Store) reshape(l *lane, in *dynamodb.UpdateItemInput) bool {
	ctx, cancel := s.loop.Within(s.stopped, s.cfg.Attempt)
	defer cancel()
	out, err := s.client.UpdateItem(ctx, in)
	s.stats.wrote(err)
	item, refused := awsdb.ConditionItem(err)
	if err == nil {
		item = out.Attributes
	} else if refused {
		s.stats.refused.Add(1)
		l.owed++
	}
	if err == nil || refused {
		image, unreadable := s.parse(l, item)
		if unreadable == nil {
			s.saw(l, image)
			return err == nil
		}
		err = unreadable
	}
	s.cfg.Logger.Warn("a bucket's item was not changed", slog.String("item", l.key.String()), slog.Any("error", err))
	l.knows.known, l.rest = false, s.cfg.Now().Add(choreRest)
	return false
}

// lately is the time at which a chore changes a lane's item. It is not before any
// that something was taken at: two shards that were full, and are one from a time
// before that, would get once more what they had no room for.
func (s *Store) lately(l *lane) int64 {
	v := l.knows.view
	return max(l.knows.now, v.refilled, v.taken, s.cfg.Clock.Correct(s.cfg.Now()).UnixMilli())
}

// cost is how many write units a write of a lane counts: its own, and those of its
// refused ones.
func (s *Store) cost(l *lane) int64 { return l.units() + l.owed }

// saw takes a reply for the bucket's state.
func (s *Store) saw(l *lane, image *view) {
	l.knows.learn(image)
	s.unmask(image)
	now := s.cfg.Now()
	l.seen, l.era = now, s.era()
	if image != nil {
		l.load.observe(now, &image.shard, s.cfg.ShardUnits)
	}
	s.sawLeases(l, image, now)
	s.forest.saw(&l.site, l.knows.index, s.prefer, sight{view: image, at: now, quiet: l.load.quiet})
}

// forward hands the requests and chores of a lane whose shard is none, or no more, to
// its heir.
func (s *Store) forward(l *lane, pending []*request) {
	to := schema.Heir(l.knows.index)
	k := l.site.shard(to)
	s.assign(l.site, to, chore{what: choreAbsorb, index: l.knows.index, found: l.knows.view})
	for _, r := range pending {
		r.key, r.confirmed = k, false
		s.queue(r)
	}
	l.todo = nil
	l.knows.known, l.knows.view = false, nil // it may be made again
	s.endLease(l)
}

// assign gives the lane of a shard a chore. The caller holds a piece of work.
func (s *Store) assign(of site, index int, c chore) {
	if l := s.lanes.assign(of.shard(index), of, c); l != nil {
		s.serve(l)
	}
}

// tendLoop tends the buckets with several shards, until ctx ends.
func (s *Store) tendLoop(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Quiet/looksPerQuiet, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.tendTrees(s.cfg.Now()) //nolint:contextcheck // a lane works for as long as the store does
		}
	}
}

// looksPerQuiet is how often a shard is looked at while it is to be merged.
const looksPerQuiet = 4

// tendTrees has the shards of all buckets looked at that were not seen lately, and
// merges those that are quiet.
func (s *Store) tendTrees(now time.Time) {
	for _, t := range s.forest.all(now.Add(-max(s.cfg.Idle, schema.MaxShards*s.cfg.Quiet))) { // each merge takes a quiet time
		leaves := t.leaves()
		for i := range leaves {
			if now.Sub(leaves[i].at) >= s.cfg.Quiet/looksPerQuiet {
				s.assign(t.site, leaves[i].Index, chore{what: choreLook})
			}
		}
		for _, index := range mergeable(leaves, now, s.cfg.Quiet) {
			s.assign(t.site, index, chore{what: choreRetire})
		}
	}
}

// mergeable returns the leaves that can be merged into their heirs: both are leaves
// of one split, and have been quiet for long enough.
func mergeable(leaves []leaf, now time.Time, quiet time.Duration) []int {
	var calm [schema.MaxShards]int // levels by index
	for i := range leaves {
		if l := &leaves[i]; l.view != nil && l.view.settled() && now.Sub(l.quiet) >= quiet {
			calm[l.Index] = l.Level
		}
	}
	var pairs []int
	for i, level := range calm {
		if level > 1 && i >= level/2 && calm[i-level/2] == level {
			pairs = append(pairs, i)
		}
	}
	return pairs
}
