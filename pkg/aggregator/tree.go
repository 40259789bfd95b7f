package aggregator

// Shard is a shard of a stream.
type Shard struct {
	ID     string
	Parent string // the shard whose records come before its own; "" = none
}

// Lease says which process works on a shard, and how far the work is.
type Lease struct {
	Shard    string
	Owner    string   // "" = no process
	Fence    int64    // rises with each owner
	Beat     int64    // rises with each write of the lease; 0 = there is no lease yet
	Position Sequence // of the last record that is done; "" = none
	Done     bool     // all records of the shard are
	Problem  error    // not nil = the lease cannot be read, and only Shard is known
}

// listed returns the ids of shards.
func listed(shards []Shard) map[string]bool {
	ids := make(map[string]bool, len(shards))
	for _, s := range shards {
		ids[s.ID] = true
	}
	return ids
}

// ready returns the shards that can be worked on, in the order of the list: they are not done, and
// their parent is done, or not to be found any more.
func ready(shards []Shard, leases map[string]Lease) []Shard {
	there := listed(shards)
	var found []Shard
	for _, s := range shards {
		if !leases[s.ID].Done && (s.Parent == "" || !there[s.Parent] || leases[s.Parent].Done) {
			found = append(found, s)
		}
	}
	return found
}

// finished reports whether all shards are done.
func finished(shards []Shard, leases map[string]Lease) bool {
	for _, s := range shards {
		if !leases[s.ID].Done {
			return false
		}
	}
	return true
}

// lost returns the leases of shards that the stream has dropped before they were done.
func lost(shards []Shard, leases map[string]Lease) []Lease {
	there := listed(shards)
	var found []Lease
	for id, l := range leases {
		if !l.Done && l.Problem == nil && !there[id] {
			found = append(found, l)
		}
	}
	return found
}
