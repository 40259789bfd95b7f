package dynamo

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// forest is what this process knows of the buckets that have several shards, by the
// partition key of shard 0. It is a hint: who asks a shard that is none is led on
// to its heir.
type forest struct {
	size  atomic.Int64
	mu    sync.RWMutex
	trees map[string]*tree
}

// tree is one such bucket.
type tree struct {
	site site

	gathering atomic.Bool // a request of this process takes from several shards

	mu     sync.Mutex
	seen   map[int]sight // of shards, as their lanes saw them last
	prefer int           // a shard at level maxShards: the leaf with it is asked first
	used   time.Time
}

// sight is what a lane saw of a shard.
type sight struct {
	view  *view
	at    time.Time
	quiet time.Time // since when it has been used little
}

// leaf is a shard that gives tokens.
type leaf struct {
	schema.Shard
	sight // the zero sight when it was not seen
}

// find returns the tree of a bucket, nil when it has one shard as far as is known.
func (f *forest) find(pk string) *tree {
	if f.size.Load() == 0 {
		return nil
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.trees[pk]
}

// saw takes down what a lane saw of a shard; nil: there is no such item.
func (f *forest) saw(of *site, index, prefer int, what sight) {
	v := what.view
	plain := index == 0 && (v == nil || !v.shard.Sharded())
	if plain && f.size.Load() == 0 {
		return
	}
	pk := of.shard(0).PK
	if plain {
		f.drop(pk)
		return
	}
	t := f.find(pk)
	if t == nil {
		if t = f.plant(pk, of, prefer, what.at); t == nil {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v == nil || v.shard.Retired {
		delete(t.seen, index)
		return
	}
	t.seen[index] = what
}

func (f *forest) plant(pk string, of *site, prefer int, now time.Time) *tree {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees == nil {
		f.trees = make(map[string]*tree)
	}
	t, ok := f.trees[pk]
	if !ok {
		t = &tree{site: *of, seen: make(map[int]sight), prefer: prefer, used: now}
		f.trees[pk] = t
		f.size.Store(int64(len(f.trees)))
	}
	return t
}

func (f *forest) drop(pk string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.trees, pk)
	f.size.Store(int64(len(f.trees)))
}

// all returns the trees, in the order of their keys, and drops those that nobody here has used since before.
func (f *forest) all(before time.Time) []*tree {
	if f.size.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*tree
	for _, pk := range slices.Sorted(maps.Keys(f.trees)) {
		t := f.trees[pk]
		t.mu.Lock()
		idle := t.used.Before(before)
		t.mu.Unlock()
		if idle {
			delete(f.trees, pk)
			continue
		}
		all = append(all, t)
	}
	f.size.Store(int64(len(f.trees)))
	return all
}

// leaves returns the shards that give tokens, as far as is known, in the order of
// their indexes.
func (t *tree) leaves() []leaf {
	t.mu.Lock()
	defer t.mu.Unlock()
	var leaves []leaf
	var walk func(index, level int)
	walk = func(index, level int) {
		seen := t.seen[index]
		s := schema.Shard{Index: index, Level: level}
		if seen.view != nil && seen.view.shard.Level >= level {
			s = seen.view.shard
		}
		for level < s.Level {
			level *= 2
			walk(index+level/2, level)
		}
		leaves = append(leaves, leaf{Shard: s, sight: seen})
	}
	walk(0, 1)
	slices.SortFunc(leaves, func(a, b leaf) int { return cmp.Compare(a.Index, b.Index) })
	return leaves
}

// first returns the leaf that this process asks first.
func (t *tree) first(leaves []leaf, now time.Time) leaf {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = now
	for _, l := range leaves {
		if t.prefer%l.Level == l.Index {
			return l
		}
	}
	return leaves[0]
}

// favor has a shard asked first from now on.
func (t *tree) favor(index int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefer = index
}

// holds returns what a leaf has of a limit, by what was seen of it: all of its share
// where nothing was.
func (l *leaf) holds(limits *limiter.Limits, i int, now int64) staged {
	if l.view != nil && l.view.version.Hash == limits.Hash() {
		if b := l.view.find(limits.At(i).Name); b != nil {
			return refilled(b, l.view.at(now))
		}
	}
	b := newBalance(&l.Shard, limits, i, now)
	return refilled(&b, now)
}
