package plan

import "github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"

// Heal returns the change of an item that its server has from an older time: it takes the tokens that
// a newer state, which this process remembers, shows to be taken. nil = none are missing. Both are
// refilled to now: the bucket could give the difference twice. Tokens that were given back
// in the time that is lost stay taken. Parts that are on lease count as taken in the state that shows
// them. A limit of one of the two alone is left as it is.
//
// The change rests on the epoch, and raises it. So several processes that remember the same take the
// difference once.
func Heal(found, remembered *schema.Bucket, now int64) (*Adjusted, error) {
	if !found.Exists() || found.Shard.Moving || found.Shard.Retired || found.Shard.Epoch >= schema.MaxEpoch {
		return nil, ErrShard
	}
	now = max(now, found.Time(), remembered.Time())
	w, then := newAdjusted(found, now, 0), newAdjusted(remembered, now, 0)
	missing := false
	for _, p := range w.portions {
		of := then.portion(p.Limit.Name)
		if of == nil {
			continue
		}
		if n := p.tokens() - of.tokens(); n > 0 { // rule: an older state gives nothing twice
			p.take(n)
			missing = true
		}
	}
	if !missing {
		return nil, nil //nolint:nilnil // there is nothing to change, and that is no error
	}
	w.finish()
	return w, nil
}

// Restore returns the state of an item that its server has lost, from one that this process remembers.
// It is newer than all that were planned before.
func Restore(remembered *schema.Bucket) *schema.Bucket {
	b := *remembered
	b.Serial++
	b.Shard.Epoch++
	return &b
}
