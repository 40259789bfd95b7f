package items

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// home returns the place of an item, of some number of places. It reports false for an item that may be in any.
func home(k schema.Key, places int) (place int, known bool) {
	if places == 1 {
		return 0, true
	}
	return schema.Home(k)
}

// Part returns the place that a call of awsdb.Items is for, by its writes or its input, and how many there are. It
// reports false for a call that is for several. It is nil where there is one place.
func (d *DB) Part() (part func(in any) (place int, one bool), places int) {
	if len(d.prefixes) == 1 {
		return nil, 0
	}
	return partOf, len(d.prefixes)
}

func partOf(in any) (place int, one bool) {
	switch in := in.(type) {
	case *schema.ItemWrite:
		return schema.Home(in.Key)
	case *dynamodb.GetItemInput:
		return schema.Home(schema.KeyOf(in.Key))
	case *dynamodb.QueryInput:
		return schema.HomeOfQuery(in)
	case *dynamodb.BatchGetItemInput:
		for table := range in.RequestItems {
			return homeOfAll(in.RequestItems[table].Keys, schema.KeyOf)
		}
	case []*schema.ItemWrite:
		return homeOfAll(in, func(w *schema.ItemWrite) schema.Key { return w.Key })
	}
	return 0, false
}

// homeOfAll returns the place of some items, and of those that stand beside them. It reports false for several places.
func homeOfAll[T any](items []T, key func(T) schema.Key) (place int, one bool) {
	for i := range items {
		of, known := schema.Home(key(items[i]))
		if known && one && of != place {
			return 0, false
		}
		if known {
			place, one = of, true
		}
	}
	return place, one
}

// inPlaces makes n calls, at once where there are several, and returns the first error.
func inPlaces(n int, call func(i int) error) error {
	if n == 1 {
		return call(0)
	}
	errs := make([]error, n)
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() { errs[i] = call(i) })
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// spot is a key in a place.
type spot struct {
	place int
	key   string // of a hash
	of    int    // which of the items that are asked for is there
}

// spots returns where items are, or may be.
func (d *DB) spots(keys []schema.Key) []spot {
	all := make([]spot, 0, len(keys))
	for i, k := range keys {
		place, known := home(k, len(d.prefixes))
		if known {
			all = append(all, spot{place, d.prefixes[place].item(k.PK, k.SK), i})
			continue
		}
		for place, of := range d.prefixes {
			all = append(all, spot{place, of.item(k.PK, k.SK), i})
		}
	}
	return all
}

// items reads n items where they may be, nil where there is none. An item that cannot be read has a fault.
func (s *Session) items(ctx context.Context, n int, at []spot) (all []attributes, faults []error, err error) {
	byPlace := make(map[int][]spot)
	for _, of := range at {
		byPlace[of.place] = append(byPlace[of.place], of)
	}
	groups := make([][]spot, 0, len(byPlace))
	for _, group := range byPlace {
		groups = append(groups, group)
	}
	all, faults = make([]attributes, n), make([]error, n)
	var mu sync.Mutex
	err = inPlaces(len(groups), func(i int) error {
		group := groups[i]
		keys := make([]string, len(group))
		for i := range group {
			keys[i] = group[i].key
		}
		found, wrong, err := s.fetch(ctx, group[0].place, keys)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, of := range group {
			if found[i] != nil || wrong[i] != nil {
				all[of.of], faults[of.of] = found[i], wrong[i]
			}
		}
		return nil
	})
	return all, faults, err
}

// part are the writes of a transaction that are in one place.
type part struct {
	place  int
	writes []int // of the transaction
}

// parts returns the writes of a transaction by place, that of the first one first. An item that stands beside a bucket
// is in the bucket's place. The deletion of an item that may be in any place is made in each.
func (d *DB) parts(writes []write) []part {
	if len(d.prefixes) == 1 {
		all := make([]int, len(writes))
		for i := range all {
			all[i] = i
		}
		return []part{{writes: all}}
	}
	var parts []part
	add := func(place, i int) {
		at := slices.IndexFunc(parts, func(p part) bool { return p.place == place })
		if at < 0 {
			at = len(parts)
			parts = append(parts, part{place: place})
		}
		parts[at].writes = append(parts[at].writes, i)
	}
	beside := slices.IndexFunc(writes, func(w write) bool { return schema.IsBucket(w.itemKey()) })
	for i := range writes {
		switch place, known := schema.Home(writes[i].itemKey()); {
		case known, writes[i].claimant != "":
			add(place, i)
		case writes[i].Kind == schema.Delete:
			for place := range d.prefixes {
				add(place, i)
			}
		case beside >= 0:
			place, _ = schema.Home(writes[beside].itemKey())
			add(place, i)
		default:
			add(place, i)
		}
	}
	return parts
}
