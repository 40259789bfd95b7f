package descriptor

import (
	"cmp"
	"math"
	"slices"
)

const (
	// inlineKeys is the most entries of a descriptor whose view needs no memory from the heap.
	inlineKeys = 16
	// maxCombinations is the most combinations of the values of repeated keys that are looked up in
	// an index. For a descriptor with more, every rule is compared.
	maxCombinations = 64
	// maxRepeats is the most values of one key that are compared. With more, a message could cost
	// its length times the number of rules.
	maxRepeats = 64
)

// keyID is the number of a key that the rules of a domain name. All other keys are unknownKey.
type keyID uint32

const unknownKey keyID = math.MaxUint32

// keyRef is an entry of a descriptor, by the number of its key.
type keyRef struct {
	id    keyID
	entry int
}

// view is a descriptor in the form for matching: its entries by the number of their key. Entries of
// one key keep the order of the descriptor.
type view struct {
	entries []Entry
	keys    []keyRef
}

// sortMany sorts many entries, and cuts those of one key to the first maxRepeats.
func sortMany(keys []keyRef) []keyRef {
	slices.SortStableFunc(keys, func(a, b keyRef) int { return cmp.Compare(a.id, b.id) })
	kept, repeats := keys[:0], 0
	for i, k := range keys {
		if i > 0 && kept[len(kept)-1].id == k.id {
			repeats++
		} else {
			repeats = 0
		}
		if repeats < maxRepeats {
			kept = append(kept, k)
		}
	}
	return kept
}

// value returns the value of the i-th entry of the view.
func (v *view) value(i int) string { return v.entries[v.keys[i].entry].Value }

// find returns the range of the entries of a key in the view. It is empty when from equals to.
func (v *view) find(id keyID) (from, to int) {
	if len(v.keys) > inlineKeys {
		from, _ = slices.BinarySearchFunc(v.keys, id, func(k keyRef, id keyID) int { return cmp.Compare(k.id, id) })
	} else {
		for from < len(v.keys) && v.keys[from].id < id {
			from++
		}
	}
	to = from
	for to < len(v.keys) && v.keys[to].id == id {
		to++
	}
	return from, to
}

// keySet returns the hash of the set of keys. It returns false when no rule names one of them, so
// that only open rules can match.
func (v *view) keySet() (uint64, bool) {
	var set uint64
	for i, k := range v.keys {
		if k.id == unknownKey {
			return 0, false
		}
		if i == 0 || v.keys[i-1].id != k.id {
			set += keyHash(k.id)
		}
	}
	return set, true
}

// manyCombinations reports whether the values of repeated keys have more than maxCombinations
// combinations.
func (v *view) manyCombinations() bool {
	combinations, run := 1, 0
	for i, k := range v.keys {
		if k.id == unknownKey {
			break
		}
		run++
		if i+1 < len(v.keys) && v.keys[i+1].id == k.id {
			continue
		}
		combinations *= run
		if combinations > maxCombinations {
			return true
		}
		run = 0
	}
	return false
}

// keyHash spreads the bits of a key, so that different sets have different sums.
func keyHash(id keyID) uint64 { return mix(uint64(id)+1, 0) }

// mix folds b into a (the finalizer of SplitMix64).
func mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
