package items

import (
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

// gains is the usage that a write adds to snapshots. Its words begin with two counts: of the snapshots that are
// thought to be there, and of the others. Unless both are 0, the count of the numbers to be added follows, and the
// numbers with their names. Each of the others has its keys, the count of the words of its attributes, and those.
type gains struct {
	added     []string   // names and numbers, in turn
	snapshots []snapshot // those that are thought to be there come first
	there     int        // how many they are
	hour      schema.Key // of the snapshot of the hour
}

type snapshot struct {
	key    string // of its hash
	pk, sk string
	fresh  []string // attributes of a new one, in turn with their values
}

// words appends the words of the gains.
func (g *gains) words(to []string) []string {
	to = append(to, strconv.Itoa(g.there), strconv.Itoa(len(g.snapshots)-g.there))
	if len(g.snapshots) == 0 {
		return to
	}
	to = append(to, strconv.Itoa(len(g.added)/2))
	to = append(to, g.added...)
	for i := g.there; i < len(g.snapshots); i++ {
		of := &g.snapshots[i]
		to = append(to, "S"+of.pk, "S"+of.sk, strconv.Itoa(len(of.fresh)))
		to = append(to, of.fresh...)
	}
	return to
}

// usage makes the gains of writes. It is safe for concurrent use.
type usage struct {
	off    bool
	clock  *awsdb.Clock
	now    func() time.Time
	gained func(hour schema.Key)
	known  *lru.Cache[string, struct{}] // keys of snapshots that are there, or were
}

// maxKnown is how many snapshots are known to be there: of some 20,000 buckets.
const maxKnown = 1 << 16

// newUsage fills in the snapshots that are known.
func newUsage(u usage) (*usage, error) {
	var err error
	u.known, err = lru.New[string, struct{}](maxKnown)
	return &u, err
}

// of returns the gains of a write in a place. It leaves out the attributes of new snapshots for those that are
// known to be there, where known says so.
func (u *usage) of(w *write, at prefix, known bool) (g gains, err error) {
	if u.off || len(w.meter.consumed) == 0 {
		return g, nil
	}
	now := u.clock.Correct(u.now())
	if w.meter.at > 0 {
		now = time.UnixMilli(w.meter.at)
	}
	gain, ok := schema.NewGain(schema.Key{PK: w.pk, SK: w.sk}, w.meter.consumed, now.UTC())
	if !ok {
		return g, nil
	}
	if g.added, err = pairs(gain.Added); err != nil {
		return g, err
	}
	g.snapshots = make([]snapshot, 0, len(gain.Snapshots))
	var others []snapshot
	for i := range gain.Snapshots {
		of := &gain.Snapshots[i]
		k := gain.Key(of)
		if of.Window == limiter.UsageHour {
			g.hour = k
		}
		one := snapshot{key: at.item(k.PK, k.SK), pk: k.PK, sk: k.SK}
		if known && u.known.Contains(one.key) {
			g.snapshots = append(g.snapshots, one)
			continue
		}
		if one.fresh, err = pairs(gain.Item(of, keep(of.Window))); err != nil {
			return g, err
		}
		others = append(others, one)
	}
	g.there = len(g.snapshots)
	g.snapshots = append(g.snapshots, others...)
	return g, nil
}

// changed tells of a write that has changed usage, or may have: it tells of the snapshot of the hour.
func (u *usage) changed(g *gains) {
	if u.gained != nil && len(g.snapshots) > 0 {
		u.gained(g.hour)
	}
}

// know notes that the snapshots of gains are there.
func (u *usage) know(g *gains) {
	for i := range g.snapshots {
		u.known.Add(g.snapshots[i].key, struct{}{})
	}
}
