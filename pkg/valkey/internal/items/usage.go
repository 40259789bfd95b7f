package items

import (
	"hash/crc32"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// keep is how long a snapshot of usage is kept after the end of its window: it is memory of the server.
func keep(w limiter.UsageWindow) time.Duration {
	const day = 24 * time.Hour
	switch w {
	case limiter.UsageHour:
		return 2 * day
	case limiter.UsageDay:
		return 35 * day
	case limiter.UsageMonth:
	}
	return 400 * day
}

// gains is the use that a write adds to the snapshot of its hour. The zero value is none.
type gains struct {
	names, numbers []string // what is added; as many of each
	counter        *counter
	full           []snapshot // the hour, the day and the month; none = the hour is thought to be there
	start          int64      // of the hour, Unix s
}

// snapshot is one of usage, with the attributes of a new one.
type snapshot struct {
	hash   string
	key    schema.Key
	fields []string // names and values, in turn
}

// counter is where the use of a bucket in an hour is counted.
type counter struct {
	hash   string     // of the hour
	hour   schema.Key // of the same
	bucket limiter.BucketKey
}

// keys appends the hashes of the snapshots.
func (g *gains) keys(to []string) []string {
	for i := range g.full {
		to = append(to, g.full[i].hash)
	}
	if len(g.full) == 0 && g.counter != nil {
		to = append(to, g.counter.hash)
	}
	return to
}

// added appends how many numbers are added, their names, and the numbers.
func (g *gains) added(to []string) []string {
	to = append(to, strconv.Itoa(len(g.names)))
	return append(append(to, g.names...), g.numbers...)
}

// words appends what is added. Unless that is nothing, the number of the snapshots with attributes follows. Where there
// are some, the time is next at which the hour is over. Each snapshot has its keys, the count of its other words, and those.
func (g *gains) words(to []string) []string {
	to = g.added(to)
	if g.counter == nil {
		return to
	}
	to = append(to, strconv.Itoa(len(g.full)))
	if len(g.full) == 0 {
		return to
	}
	to = append(to, strconv.FormatInt(g.over(), 10))
	for i := range g.full {
		of := &g.full[i]
		to = append(to, "S"+of.key.PK, "S"+of.key.SK, strconv.Itoa(len(of.fields)))
		to = append(to, of.fields...)
	}
	return to
}

// over returns when the sweep may add the hour to its day and its month, Unix s. That is within an hour after its end, so
// that the server does not do so for all buckets at once.
func (g *gains) over() int64 {
	const hour = int64(time.Hour / time.Second)
	return g.start + hour + int64(crc32.ChecksumIEEE([]byte(g.counter.hash)))%hour
}

// usage makes the gains of writes. It is safe for concurrent use.
type usage struct {
	off    bool
	clock  *awsdb.Clock
	now    func() time.Time
	gained func(hour schema.Key)
	known  *lru.Cache[bucketHour, *counter] // those whose snapshots are there, or were
}

// bucketHour is an hour of a bucket.
type bucketHour struct {
	pk   string
	hour int64 // Unix s
}

// maxKnown is of how many buckets the snapshots of an hour are known to be there.
const maxKnown = 1 << 15

// newUsage fills in the counters that are known.
func newUsage(u usage) (*usage, error) {
	var err error
	u.known, err = lru.New[bucketHour, *counter](maxKnown)
	return &u, err
}

// hour returns the hour of a write.
func (u *usage) hour(w *write) time.Time {
	at := time.UnixMilli(w.meter.at)
	if w.meter.at == 0 {
		at = u.clock.Correct(u.now())
	}
	return limiter.UsageHour.Start(at.UTC())
}

// of returns the gains of a write in a place. It leaves out the attributes of snapshots that are known to be there, where
// known says so.
func (u *usage) of(w *write, at prefix, known bool) (g gains, err error) {
	if u.off || len(w.meter.consumed) == 0 {
		return g, nil
	}
	hour := u.hour(w)
	g.start = hour.Unix()
	c, there := u.known.Get(bucketHour{w.Key.PK, g.start})
	var snapshots schema.Snapshots
	if there = there && known; !there {
		var ok bool
		if snapshots, ok = schema.SnapshotsOf(w.itemKey(), hour); !ok {
			return g, nil
		}
		k := snapshots.Key(limiter.UsageHour)
		c = &counter{at.item(k.PK, k.SK), k, snapshots.Bucket}
	}
	g.names, g.numbers = append(g.names, schema.AttrEvents), append(g.numbers, "1")
	for _, of := range w.meter.consumed {
		if !c.bucket.Uncounted(of.limit) {
			g.names, g.numbers = append(g.names, schema.UsedAttr(of.limit)), append(g.numbers, of.number)
		}
	}
	if len(g.names) == 1 {
		return gains{}, nil
	}
	if g.counter = c; there {
		return g, nil
	}
	for _, window := range limiter.UsageWindows() {
		k := snapshots.Key(window)
		one := snapshot{hash: at.item(k.PK, k.SK), key: k}
		fields, err := pairs(snapshots.Item(window, keep(window)))
		if err != nil {
			return g, err
		}
		one.fields = append([]string{schema.AttrEvents, "0"}, fields...) // those of a day come when an hour of it is over
		g.full = append(g.full, one)
	}
	return g, nil
}

// changed tells of a write that has changed usage, or may have.
func (u *usage) changed(g *gains) {
	if u.gained != nil && g.counter != nil {
		u.gained(g.counter.hour)
	}
}

// know notes that the snapshots of the gains of a write are there.
func (u *usage) know(w *write, g *gains) {
	if len(g.full) > 0 {
		u.known.Add(bucketHour{w.Key.PK, g.start}, g.counter)
	}
}
