package fleetsim_test

import (
	"time"
)

// leaseSeen is the time within which each holder of a lease sees that it is asked back: with its
// next renewal. A holder that has calls sees it with the first of them that is not served.
const leaseSeen = 2300 * int64(time.Millisecond)

// expectForce requires that the newest limits of a bucket are in force a while after all replicas
// got them. Where something is broken meanwhile the time begins anew after it.
func (f *fleet) expectForce(b *bucket, version int, since int64) {
	bound := f.promptly()
	if b.limits[0].lacks.leased {
		bound += leaseSeen
	}
	calls := b.calls
	f.at(since+bound, func() {
		it := b.items[0]
		switch {
		case f.over || f.leaping > since || version+1 < len(b.versions) || it == nil || it.Shard.Sharded() || f.crowded():
		case f.troubled > since:
			f.expectForce(b, version, f.troubled)
		case b.calls < calls+callsOfAll*len(f.replicas): // not each replica needs the limits
			f.expectForce(b, version, f.now)
		case it.Version.Hash != b.versions[version].Hash():
			f.failInTime("bucket %d: limits that all replicas know since %v are not in force after %v, which are to be within %v", b.index, time.Duration(since), time.Duration(f.now-since), time.Duration(bound))
		default:
			f.seen["limits in force in time"]++
		}
	})
}

// callsOfAll is the least number of calls to a bucket for each replica, on average, in a time
// in which all replicas need it.
const callsOfAll = 3
