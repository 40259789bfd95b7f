package embedded

import "slices"

// shardsOf appends the indices of the shards of the given buckets, each once and
// in ascending order: every decision takes its locks in this order, so none waits
// for another in a circle.
func shardsOf(indices []uint16, held []opened) []uint16 {
	for i := range held {
		indices = append(indices, uint16(held[i].hash%shardCount))
	}
	slices.Sort(indices)
	return slices.Compact(indices)
}

func (t *table) lock(indices []uint16) {
	for _, i := range indices {
		t.shards[i].mu.Lock()
	}
}

func (t *table) unlock(indices []uint16) {
	for _, i := range indices {
		t.shards[i].mu.Unlock()
	}
}
