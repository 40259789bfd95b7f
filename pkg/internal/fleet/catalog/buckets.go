package catalog

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Buckets finds the items of buckets, and changes them together with the audit. It has the
// lifetime of its catalog, and is safe for concurrent use.
type Buckets struct{ catalog *Catalog }

// NewBuckets returns the buckets of a catalog's table.
func NewBuckets(c *Catalog) *Buckets { return &Buckets{c} }

// StoredBucket is a bucket as the table has it.
type StoredBucket struct {
	Key   limiter.BucketKey
	Items map[int]*schema.Bucket // its shards by index, retired ones included
}

// List lists buckets, each by its first shard: a query of keys for a page, and the items in one
// batch. A bucket of the last second may be missing. One that expires between is left out.
func (b *Buckets) List(ctx context.Context, namespace string, f limiter.BucketFilter, p limiter.Page) (limiter.PageOf[StoredBucket], error) {
	c := b.catalog
	stages := func(ns string) []stage { return bucketStages(c.table.name, ns, f) }
	return inStages(ctx, c, namespace, p, stages, func(_ string, s stage, from map[string]string, size int) ([]StoredBucket, map[string]string, error) {
		keys, items, next, err := lists{&c.table}.behind(ctx, s, from, size)
		if err != nil {
			return nil, nil, err
		}
		all, err := b.parse(ctx, namespace, keys, items)
		return all, next, err
	})
}

// bucketStages are the queries that find the buckets that f selects.
func bucketStages(table, ns string, f limiter.BucketFilter) []stage {
	if f.Entity != "" {
		return []stage{{query: schema.QueryEntityBuckets(table, ns, f.Entity, f.Resource)}}
	}
	all := make([]stage, schema.IndexPartitions)
	for i := range all {
		if f.Resource != "" {
			all[i].query = schema.QueryResourceBuckets(table, ns, f.Resource, i)
		} else {
			all[i].query = schema.QueryBuckets(table, ns, i)
		}
	}
	return all
}

// parse reads the buckets of these items that are first shards, and their other shards.
func (b *Buckets) parse(ctx context.Context, namespace string, keys []schema.Key, items map[schema.Key]map[string]types.AttributeValue) ([]StoredBucket, error) {
	t := &b.catalog.table
	var all []StoredBucket
	for _, k := range keys {
		item := items[k]
		if item == nil || schema.ShardIndex(k) != 0 {
			continue
		}
		name, _, err := schema.BucketOfItem(t.name, k, item)
		if err != nil {
			return nil, err
		}
		name.Namespace = namespace
		first, err := schema.ParseBucket(t.name, k, item, nil)
		if err != nil {
			return nil, err
		}
		shards, err := b.shards(ctx, k, first)
		if err != nil {
			return nil, err
		}
		all = append(all, StoredBucket{name, shards})
	}
	return all, nil
}

// Read reads the shards of a bucket in the namespace with an id; none where there is no bucket.
func (b *Buckets) Read(ctx context.Context, ns string, of limiter.BucketKey) (map[int]*schema.Bucket, error) {
	t := &b.catalog.table
	k := schema.BucketKey(ns, of, 0)
	items, err := t.read(ctx, []schema.Key{k})
	if err != nil || items[k] == nil {
		return nil, err
	}
	first, err := schema.ParseBucket(t.name, k, items[k], nil)
	if err != nil {
		return nil, err
	}
	return b.shards(ctx, k, first)
}

// shards returns the shards of a bucket by index, of which the first, at k, is known. All are
// read at once, for a tree of any shape.
func (b *Buckets) shards(ctx context.Context, k schema.Key, first *schema.Bucket) (map[int]*schema.Bucket, error) {
	if !first.Shard.Sharded() {
		return map[int]*schema.Bucket{0: first}, nil
	}
	t := &b.catalog.table
	keys := make([]schema.Key, 0, schema.MaxShards)
	for i := range schema.MaxShards {
		keys = append(keys, schema.ShardKey(k, i))
	}
	items, err := t.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	shards := make(map[int]*schema.Bucket)
	for i, k := range keys {
		if items[k] == nil {
			continue
		}
		if shards[i], err = schema.ParseBucket(t.name, k, items[k], first.Limits); err != nil {
			return nil, err
		}
	}
	return shards, nil
}

// Namespace returns the name and the id of a namespace, the zero one where the name is not registered. It
// asks the table for one that is not in use in this process.
func (b *Buckets) Namespace(ctx context.Context, name string) (schema.Namespace, error) {
	if sp, ok := b.catalog.spaces.Load(name); ok && b.catalog.usable(ctx) == nil {
		return schema.Namespace{Name: name, ID: sp.(*space).id}, nil
	}
	return b.catalog.registered(ctx, name)
}

// Made returns the text of the record k of an adjustment. made is whether one was made in the
// last limiter.OnceAge.
func (b *Buckets) Made(ctx context.Context, k schema.Key, now time.Time) (booked string, made bool, err error) {
	found, err := b.catalog.table.read(ctx, []schema.Key{k})
	if err != nil {
		return "", false, err
	}
	return schema.ParseOnce(b.catalog.table.name, k, found[k], now)
}

// Commit applies writes and their audit event in one transaction; an event without an action is none. The writes
// are at most 96.
// check is called before, while this process makes no other change of the namespace, and its
// error is returned. Where conditions of writes do not hold nothing is applied, and refused
// says of which.
func (b *Buckets) Commit(ctx context.Context, namespace string, event limiter.AuditEvent, writes []*schema.ItemWrite, check func(ctx context.Context) error) (refused []bool, err error) {
	err = b.catalog.change(ctx, namespace, func(ctx context.Context, _ *space, _ uint64) (edit, error) {
		return edit{writes: writes, refs: []limiter.Ref{}, event: event}, check(ctx)
	})
	refused = make([]bool, len(writes))
	for i := range writes {
		code, _ := awsdb.ReasonAt(err, firstWrite+i)
		refused[i] = code == awsdb.ConditionFailed
	}
	if slices.Contains(refused, true) {
		return refused, nil
	}
	return nil, err
}
