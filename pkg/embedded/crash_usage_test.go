package embedded

import (
	"maps"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checkUsage compares all usage and events after a restart with the true ones. Only a crash loses
// some, of takes and of refunds, and none counts twice.
func (w *world) checkUsage(now *Store, crashed bool) {
	w.t.Helper()
	found := w.usage(now)
	maps.DeleteFunc(w.used, func(_ string, n int64) bool { return n == 0 })
	if !crashed {
		if diff := cmp.Diff(w.used, found); diff != "" {
			w.fatalf("clean shutdown: usage (-want +got):\n%s", diff)
		}
	}
	for limit, n := range found {
		if most := w.used[limit] + w.openRefunds(limit); n > most {
			w.fatalf("recovered a usage of %d of limit %s, there was %d", n, limit, most)
		}
	}
	w.used = found
}

// usage adds up the consumption of all hours, by entity and limit.
func (w *world) usage(s *Store) map[string]int64 {
	w.t.Helper()
	all := make(map[string]int64)
	err := s.disk.file.View(func(tx *datafile.Tx) error {
		return tx.Each(datafile.Usage, []byte{usageTag(limiter.UsageHour)}, func(key, value []byte) error {
			r := &recordReader{Rest: key[1+8:]}
			_, entity, _, limit := r.Text(), r.Text(), r.Text(), r.Text()
			n, err := usageValue(value)
			all[entity+"/"+limit] += n
			return err
		})
	})
	if err != nil {
		w.fatalf("reading usage: %v", err)
	}
	for _, b := range s.copies() {
		if b.block == nil {
			continue
		}
		for i := range b.limits.Len() {
			all[b.entity+"/"+b.limits.At(i).Name] += b.block.span(i).used
		}
		all[b.entity+"/"+eventsLimit] += b.block.events
		if b.block.rest != nil {
			for _, c := range b.block.rest.past {
				all[b.entity+"/"+c.limit] += c.amount
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}
