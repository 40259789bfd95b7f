package embedded

import "slices"

// locked are the shards that a decision holds.
type locked struct {
	fixed [16]uint16 // their indices when they are few: no allocation
	many  []uint16   // their indices when they are more
	count int
}

// lock locks the shards of the given buckets, each once and in ascending order:
// every decision takes its locks in the same order, so none waits for another in a circle.
func (l *locked) lock(s *Store, held []opened) {
	indices := l.fixed[:0]
	for i := range held {
		indices = append(indices, uint16(held[i].hash%shardCount))
	}
	slices.Sort(indices)
	indices = slices.Compact(indices)
	if l.count = len(indices); len(held) > len(l.fixed) {
		l.many = indices
	}
	for _, i := range indices {
		s.shards[i].mu.Lock()
	}
}

func (l *locked) unlock(s *Store) {
	indices := l.many
	if indices == nil {
		indices = l.fixed[:l.count]
	}
	for _, i := range indices {
		s.shards[i].mu.Unlock()
	}
}
