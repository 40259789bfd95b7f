package dynamofake

import "maps"

// Snapshot is the items of all tables at a time.
type Snapshot struct {
	partitions map[string]map[string]map[string]item
}

// SnapshotOf returns the items of a DB now.
func SnapshotOf(db *DB) Snapshot {
	db.mu.Lock()
	defer db.mu.Unlock()
	s := Snapshot{make(map[string]map[string]map[string]item)}
	for name, t := range db.tables {
		s.partitions[name] = clonePartitions(t.partitions)
	}
	return s
}

// Restore replaces all items of a DB by those of the snapshot, as a server does that comes back with an
// older state. The zero Snapshot has none.
func (s Snapshot) Restore(db *DB) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for name, t := range db.tables {
		t.partitions = clonePartitions(s.partitions[name])
	}
}

func clonePartitions(of map[string]map[string]item) map[string]map[string]item {
	all := make(map[string]map[string]item, len(of))
	for pk, items := range of {
		all[pk] = make(map[string]item, len(items))
		for sk, it := range items {
			all[pk][sk] = maps.Clone(it)
		}
	}
	return all
}
