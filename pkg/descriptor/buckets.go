package descriptor

// buckets is a hash table of rules: its length is a power of two, and at least
// half of it is free. It is what matching spends its time in, and costs the same
// for ten rules and for ten thousand, which a map does not.
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

// add adds a rule that comes after all that were added. used is the number of
// buckets that are not free.
func (b *buckets) add(hash uint64, r *Rule, used *int) {
	c := b.find(hash)
	if c.first != nil {
		c.more = append(c.more, r)
		return
	}
	*c = bucket{hash: hash, first: r}
	if *used++; 2**used <= len(*b) {
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
