package lane

import "time"

const (
	// loadWindow is the least time that the use of write units is averaged over.
	loadWindow = time.Second
	// A shard is split when it uses splitPercent of its units. It is merged when it and the
	// other half use no more than quietPercent each. So the two in one do not come near to a
	// split again.
	splitPercent = 80
	quietPercent = 25
)

// Load is how fast a shard uses write units, all replicas together. The item counts them, so a
// lane that sees the item twice can compute the rate between. The zero Load has seen no item.
type Load struct {
	level int
	since time.Time // of the window
	units int64     // at its beginning
	Busy  bool      // the last window used enough for a split
	Quiet time.Time // no window since has used more than a merge allows
}

// Observe learns from an item as it was seen now, by the level of its shard and the write units that it has
// used. A split and a merge change the level. most is the capacity of a shard, in units a second.
func (o *Load) Observe(now time.Time, level int, used, most int64) {
	if o.since.IsZero() || level != o.level || used < o.units {
		*o = Load{level: level, since: now, units: used, Quiet: now}
		return
	}
	elapsed := now.Sub(o.since)
	if elapsed < loadWindow {
		return
	}
	percent := (used - o.units) * 100_000 / elapsed.Milliseconds() / most
	o.Busy = percent >= splitPercent
	if percent > quietPercent {
		o.Quiet = now
	}
	o.since, o.units = now, used
}
