package catalog

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// readRecords reads the records of refs, each as it is when it is read. Refs of
// the same record are read once.
func (t *table) readRecords(ctx context.Context, ns string, refs []limiter.Ref) ([]schema.StoredRecord, error) {
	stored := make([]schema.StoredRecord, len(refs))
	keys := make([]schema.Key, 0, len(refs))
	first := make(map[schema.Key]int, len(refs)) // index of the first ref with the key
	same := make([]int, len(refs))
	for i, ref := range refs {
		k := schema.KeyOfRef(ns, ref)
		if _, found := first[k]; !found {
			first[k] = i
			keys = append(keys, k)
		}
		same[i] = first[k]
	}
	found, err := t.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if same[i] != i {
			stored[i] = stored[same[i]]
			continue
		}
		if stored[i], err = schema.ParseRecord(t.name, ns, ref, found[schema.KeyOfRef(ns, ref)]); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// entity reads an entity, nil for none.
func (t *table) entity(ctx context.Context, ns, id string) (*limiter.Entity, error) {
	stored, err := t.readRecords(ctx, ns, []limiter.Ref{limiter.EntityRef(id)})
	if err != nil {
		return nil, err
	}
	return stored[0].Record.Entity, nil
}

// counters are those of a namespace, or why they cannot be read.
type counters struct {
	schema.Counters

	err error
}

// readCounters reads the counters of namespaces: an item of each.
func (t *table) readCounters(ctx context.Context, ids ...string) ([]counters, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = schema.ConfigurationKey(id)
	}
	found, err := t.read(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("generations: %w", err)
	}
	read := make([]counters, len(ids))
	for i, id := range ids {
		read[i].Counters, read[i].err = schema.ParseCounters(t.name, id, found[keys[i]])
	}
	return read, nil
}
