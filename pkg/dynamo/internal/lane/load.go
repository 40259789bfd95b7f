package lane

import "time"

const (
	// loadWindow is the least time that the use of write units is averaged over.
	loadWindow = time.Second
	// A shard is split when it uses splitPercent of its units, and merged when it and the
	// other half use no more than quietPercent each, so that the two in one do not come near
	// to a split again.
	splitPercent = 80
	quietPercent = 25
)

// load is how fast a shard uses write units, all replicas together. The item counts them,
// so that a lane that sees the item twice knows the rate between. The zero load knows nothing.
type load struct {
	epoch int64
	since time.Time // of the window
	units int64     // at its beginning
	busy  bool      // the last window used enough for a split
	quiet time.Time // no window since has used more than a merge allows
}

// observe learns from an item as it was seen now, by its epoch of birth and the write units
// that it has used. most is what a shard is good for, in units a second.
func (o *load) observe(now time.Time, level, used, most int64) {
	if o.since.IsZero() || level != o.epoch || used < o.units {
		*o = load{epoch: level, since: now, units: used, quiet: now}
		return
	}
	elapsed := now.Sub(o.since)
	if elapsed < loadWindow {
		return
	}
	percent := (used - o.units) * 100 / max(most*elapsed.Milliseconds()/1000, 1)
	o.busy = percent >= splitPercent
	if percent > quietPercent {
		o.quiet = now
	}
	o.since, o.units = now, used
}
