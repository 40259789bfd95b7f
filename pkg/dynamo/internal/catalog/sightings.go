package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// OldReplicas says which replicas of version 1 wrote to buckets of a table.
type OldReplicas struct {
	Looked   int      // buckets that were looked at, at most 1,024 of a namespace
	Old      int      // of them, buckets in form 1
	Replicas []string // names under which replicas of version 1 wrote meanwhile, in order
}

// sampleOf is the number of buckets that are looked at in each part of a namespace.
const sampleOf = 64

// WatchOld looks for replicas of version 1: it reads up to 1,024 buckets of each namespace
// that is not raised, waits, and reads them again. A replica that wrote to none of them in
// between is not seen. wait may end early with an error. Errors are those of [Catalog.Read].
func WatchOld(ctx context.Context, client awsdb.Client, name string, all []schema.Namespace, wait func(context.Context) error) (OldReplicas, error) {
	t := table{client: client, name: name, loop: awsdb.Goroutines{}}
	var keys []schema.Key
	for _, ns := range all {
		if ns.Form != schema.FormOld {
			continue
		}
		for part := range schema.IndexPartitions {
			found, err := t.sample(ctx, ns.ID, part)
			if err != nil {
				return OldReplicas{}, fmt.Errorf("buckets of namespace %.100q: %w", ns.Title(), err)
			}
			keys = append(keys, found...)
		}
	}
	before, err := t.writers(ctx, keys)
	if err != nil || len(before) == 0 {
		return OldReplicas{Looked: len(keys)}, err
	}
	if err = wait(ctx); err != nil {
		return OldReplicas{}, err
	}
	after, err := t.writers(ctx, slices.Collect(maps.Keys(before)))
	if err != nil {
		return OldReplicas{}, err
	}
	replicas := make(map[string]struct{})
	for k, ids := range after {
		for i, id := range ids {
			if id != before[k][i] && id.Old() {
				replicas[id.OldReplica()] = struct{}{}
			}
		}
	}
	return OldReplicas{Looked: len(keys), Old: len(before), Replicas: slices.Sorted(maps.Keys(replicas))}, nil
}

// sample returns the keys of some buckets in a part of a namespace.
func (t *table) sample(ctx context.Context, ns string, part int) ([]schema.Key, error) {
	q := schema.QueryBuckets(t.name, ns, part)
	q.Limit = aws.Int32(sampleOf)
	var keys []schema.Key
	for item, err := range t.scan(ctx, q) {
		if err != nil {
			return nil, err
		}
		k, err := schema.ItemKey(t.name, item)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, k); len(keys) == sampleOf {
			break
		}
	}
	return keys, nil
}

// writers returns the ids of the last writes of those buckets that have form 1.
func (t *table) writers(ctx context.Context, keys []schema.Key) (map[schema.Key][]schema.WriteID, error) {
	found, err := t.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	writers := make(map[schema.Key][]schema.WriteID, len(found))
	for k, item := range found {
		if ids := schema.OldWriters(item); ids != nil {
			writers[k] = ids
		}
	}
	return writers, nil
}

// Wait returns a wait for [WatchOld].
func Wait(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return awsdb.Goroutines{}.Sleep(ctx, d) }
}
