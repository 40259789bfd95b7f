package descriptor

// buckets is a hash table of rules. Its length is a power of two, and at least half of it is free.
// Matching spends its time here: a look-up costs the same for ten rules and for ten thousand, which
// is not so in a map.
type buckets []bucket

// bucket has the rules of one hash, in order; most buckets have one.
type bucket struct {
	hash  uint64
	first *Rule // nil = the bucket is free
	more  []*Rule
}

// find returns the bucket of a hash, or the free one where it would be.
func (b buckets) find(hash uint64) *bucket {
	for i := hash; ; i++ {
		if c := &b[i&uint64(len(b)-1)]; c.hash == hash || c.first == nil { // #nosec G115 -- a length is not negative
			return c
		}
	}
}

// add adds a rule whose order is above that of all rules in the table. used is the number of
// buckets that are not free.
func (b *buckets) add(hash uint64, r *Rule, used *int) {
	c := b.find(hash)
	if c.first != nil {
		c.more = append(c.more, r)
		return
	}
	*c = bucket{hash: hash, first: r}
	*used++
	if 2**used <= len(*b) {
		return
	}
	grown := make(buckets, 2*len(*b))
	for i := range *b {
		if old := &(*b)[i]; old.first != nil {
			*grown.find(old.hash) = *old
		}
	}
	*b = grown
}
