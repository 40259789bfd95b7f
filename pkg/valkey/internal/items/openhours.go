package items

import (
	"math/big"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// An hour of usage that is not over yet is in no other snapshot: those of its day and its month have an attribute for
// it, of openHour and the window. It has two that name them, which begin with opens. Readers see none of these. The keys
// of the three begin alike, and end in the window.
const openHour, opens = "<", ">"

// openHours adds the hours that snapshots in a place name to them.
type openHours struct {
	of   prefix
	read func(keys []string) ([]map[string]string, error)
}

// named is an hour that a snapshot names.
type named struct {
	hour     string // key of its hash
	snapshot int
}

// take takes the names of open hours out of snapshots.
func (o *openHours) take(snapshots []map[string]string) (all []named) {
	for i, it := range snapshots {
		for name := range it {
			switch window, open := strings.CutPrefix(name, openHour); {
			case open:
				all = append(all, named{o.beside(it, window), i})
				delete(it, name)
			case strings.HasPrefix(name, opens):
				delete(it, name)
			}
		}
	}
	return all
}

// beside returns the key of the snapshot of another window, which begins alike.
func (o *openHours) beside(snapshot map[string]string, window string) string {
	pk, sk := strings.TrimPrefix(snapshot[schema.AttrPK], "S"), strings.TrimPrefix(snapshot[schema.AttrSK], "S")
	end := strings.LastIndexByte(sk, '#')
	end = strings.LastIndexByte(sk[:max(end, 0)], '#') + 1
	return o.of.item(pk, sk[:end]+window)
}

// add adds the hours to hashes with some keys: a snapshot that names an hour does not have its use. The sweep may add an
// hour between the two reads, and delete it. So a snapshot is read once more where an hour is not open; last says
// that this is that time.
func (o *openHours) add(keys []string, snapshots []map[string]string, last bool) error {
	all := o.take(snapshots)
	if len(all) == 0 {
		return nil
	}
	hashes := make([]string, len(all))
	for i := range all {
		hashes[i] = all[i].hour
	}
	hours, err := o.read(hashes)
	if err != nil {
		return err
	}
	var over []int // snapshots
	for i, n := range all {
		if _, open := hours[i][opens+"day"]; !last && !open && !slices.Contains(over, n.snapshot) {
			over = append(over, n.snapshot)
		}
	}
	for i, n := range all {
		if !slices.Contains(over, n.snapshot) {
			addUse(snapshots[n.snapshot], hours[i])
		}
	}
	return o.again(keys, snapshots, over)
}

// again reads some of the snapshots once more.
func (o *openHours) again(keys []string, snapshots []map[string]string, which []int) error {
	if len(which) == 0 {
		return nil
	}
	some := make([]string, len(which))
	for i, of := range which {
		some[i] = keys[of]
	}
	found, err := o.read(some)
	if err != nil {
		return err
	}
	for i, of := range which {
		snapshots[of] = found[i]
	}
	return o.add(some, found, true)
}

// addUse adds the numbers of an hour to a snapshot.
func addUse(to, hour map[string]string) {
	for name, v := range hour {
		n, isNumber := new(big.Int).SetString(v, 10)
		if !isNumber || name == schema.AttrTTL {
			continue
		}
		if had, ok := new(big.Int).SetString(to[name], 10); ok {
			n.Add(n, had)
		}
		to[name] = n.String()
	}
}

// isUsage reports whether a key is of a snapshot of usage.
func isUsage(k schema.Key) bool {
	_, _, ok := schema.ParseUsageKey(k)
	return ok
}
