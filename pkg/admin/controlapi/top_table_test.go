package controlapi

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A table counts each key exactly while there is room. Then a new key gets the counts of one with the fewest events.
func TestTableKeepsTheKeysWithTheMostEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counted table
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			want := map[uint64]int64{}
			hash := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{10, 200, 5000}).Draw(t, "keys"))
			for _, h := range rapid.SliceOfN(hash, 0, 2000).Draw(t, "events") {
				_, known := want[h]
				if !known && len(want) == shardKeys {
					least := slices.Min(slices.Collect(maps.Values(want)))
					counted.add(h, TopKey{}, 1)
					for old, n := range want {
						if counted.count(old) == nil {
							if n != least {
								t.Fatalf("a key with %d events has gone, and the fewest are %d", n, least)
							}
							delete(want, old)
						}
					}
					want[h] = least + 1
				} else {
					counted.add(h, TopKey{}, 1)
					want[h]++
				}
			}
			for h, n := range want {
				if c := counted.count(h); c == nil || c.events != n {
					t.Fatalf("key %d: got %+v, want %d events", h, c, n)
				}
			}
			if len(counted.counts) != len(want) {
				t.Fatalf("got %d keys, want %d", len(counted.counts), len(want))
			}
			counted.clear()
		}
	})
}
