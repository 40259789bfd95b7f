package catalog

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
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

// counter is the value of a namespace's counter, or why it cannot be read.
type counter struct {
	value uint64
	err   error
}

// readCounters reads the table's counter and those of namespaces, by their ids.
func (t *table) readCounters(ctx context.Context, namespaces ...string) (all uint64, counters []counter, err error) {
	keys := make([]schema.Key, 0, len(namespaces)+1)
	for _, ns := range namespaces {
		keys = append(keys, schema.GenerationKey(ns))
	}
	found, err := t.read(ctx, append(keys, schema.AllGenerationKey()))
	if err != nil {
		return 0, nil, fmt.Errorf("generations: %w", err)
	}
	if all, err = schema.ParseCounter(t.name, schema.AllGenerationKey(), found[schema.AllGenerationKey()]); err != nil {
		return 0, nil, err
	}
	counters = make([]counter, len(keys))
	for i, k := range keys {
		counters[i].value, counters[i].err = schema.ParseCounter(t.name, k, found[k])
	}
	return all, counters, nil
}
