package catalog

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// watched is a namespace whose counters are to be read.
type watched struct {
	id  string
	old bool // a replica of version 1 may raise counters, which are elsewhere
}

// counters are those of a namespace, or why they cannot be read.
type counters struct {
	schema.Counters

	all uint64 // the table's counter, where it was read
	err error
}

// readCounters reads the counters of namespaces: an item of each. Of an old one it also reads the
// counter of changes itself, and with that the table's.
func (t *table) readCounters(ctx context.Context, namespaces ...watched) ([]counters, error) {
	keys := make([]schema.Key, 0, len(namespaces))
	for _, ns := range namespaces {
		keys = append(keys, schema.ConfigurationKey(ns.id))
		if ns.old {
			keys = append(keys, schema.GenerationKey(ns.id))
		}
	}
	if len(keys) > len(namespaces) {
		keys = append(keys, schema.AllGenerationKey())
	}
	found, err := t.read(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("generations: %w", err)
	}
	k := schema.AllGenerationKey()
	all, err := schema.ParseCounter(t.name, k, found[k])
	if err != nil {
		return nil, err
	}
	read := make([]counters, len(namespaces))
	for i, ns := range namespaces {
		read[i] = t.countersOf(ns, found)
		read[i].all = all
	}
	return read, nil
}

// countersOf returns the counters of a namespace among items.
func (t *table) countersOf(ns watched, found map[schema.Key]map[string]types.AttributeValue) (c counters) {
	c.Counters, c.err = schema.ParseCounters(t.name, ns.id, found[schema.ConfigurationKey(ns.id)])
	if c.err == nil && ns.old {
		var changes uint64
		changes, c.err = schema.ParseCounter(t.name, schema.GenerationKey(ns.id), found[schema.GenerationKey(ns.id)])
		c.Changes = max(c.Changes, changes)
	}
	return c
}
