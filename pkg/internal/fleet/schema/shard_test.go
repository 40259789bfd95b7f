package schema

import (
	"math/rand/v2"
	"testing"
)

// The parts of a number sum to it at every level. Those of a pair sum to that of the
// shard that was split. They are in order, and at most one apart.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := []int64{r.Int64N(100), r.Int64N(1_000_000), r.Int64N(1 << 60)}[r.IntN(3)]
		for level := 1; level <= MaxShards; level *= 2 {
			sum, most, least := int64(0), PartOf(n, 0, level), PartOf(n, 0, level)
			for i := range level {
				p := PartOf(n, i, level)
				sum, most, least = sum+p, max(most, p), min(least, p)
				if level == MaxShards {
					continue
				}
				if stays, leaves := PartOf(n, i, 2*level), PartOf(n, i+level, 2*level); stays+leaves != p || stays < leaves {
					t.Fatalf("shard %d of %d has %d of %d; its halves %d and %d", i, level, p, n, stays, leaves)
				}
			}
			if sum != n || most-least > 1 || PartOf(n, 0, level) != most {
				t.Fatalf("%d in %d parts: %d to %d, the first %d; together %d", n, level, least, most, PartOf(n, 0, level), sum)
			}
		}
	}
}

// The shards of a tree are numbered so that each but the first has an heir: the
// shard that it was split from, and the other half of that one's split.
func TestHeirs(t *testing.T) {
	for level := 1; level < MaxShards; level *= 2 {
		for index := range level {
			of := Shard{Index: index, Level: level, Epoch: 7}
			stays, leaves := of.Split()
			if Heir(leaves.Index) != index || BornAt(leaves.Index) != 2*level || stays.Other() != leaves {
				t.Errorf("shard %d of %d splits off %+v, heir %d, born at %d; the other half is %+v", index, level, leaves, Heir(leaves.Index), BornAt(leaves.Index), stays.Other())
			}
			if back := stays.Absorb(leaves.Retire().Epoch); back.Level != level || back.Epoch <= leaves.Epoch+1 || back.Births != of.Births {
				t.Errorf("shard %d of %d after it was split and made whole: %+v", index, level, back)
			}
		}
	}
}
