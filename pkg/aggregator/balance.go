package aggregator

import "math/rand/v2"

// surplus returns a lease that an owner should take from another one: any of those of the owner with the most
// leases, where that has at least two more. So the numbers of all differ by one at last, and no lease
// goes back and forth. shards are those that can be worked on.
func surplus(owner string, shards []Shard, leases map[string]Lease) (taken Lease, ok bool) {
	held := map[string][]Lease{owner: nil}
	richest := owner
	for _, s := range shards {
		l := leases[s.ID]
		if l.Owner == "" {
			continue
		}
		held[l.Owner] = append(held[l.Owner], l)
		if len(held[l.Owner]) > len(held[richest]) {
			richest = l.Owner
		}
	}
	rich := held[richest]
	if len(rich)-len(held[owner]) < 2 {
		return Lease{}, false
	}
	return rich[rand.IntN(len(rich))], true // #nosec G404 -- no secret
}
