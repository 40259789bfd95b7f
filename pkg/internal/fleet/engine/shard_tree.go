package engine

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// CrowdedPause is for how long no request of a process takes from several shards after two wanted to at a time.
const CrowdedPause = 50 * time.Millisecond

// Forest is the last state that this process saw of the buckets with several shards.
// The zero Forest has none. It is safe for concurrent use.
type Forest struct {
	size  atomic.Int64
	mu    sync.RWMutex
	trees map[ShardID]*Tree
}

// ShardID names a bucket: the id of its namespace, and its key.
type ShardID struct {
	Namespace string
	Bucket    limiter.BucketKey
}

// Tree is one such bucket. It is safe for concurrent use.
type Tree struct {
	ID ShardID

	gathering atomic.Bool  // a request of this process takes from several shards
	crowded   atomic.Int64 // when another one wanted to meanwhile, Unix ns

	mu     sync.Mutex
	seen   map[int]Sight // of shards, as their lanes saw them last
	prefer int           // a shard at level schema.MaxShards: the leaf with it is asked first
	used   time.Time
}

// Sight is a state of a shard that a lane saw.
type Sight struct {
	State *schema.Bucket // nil = there is no item
	At    time.Time
	Quiet time.Time // since when it has been used little
}

// Leaf is a shard that gives tokens.
type Leaf struct {
	schema.Shard
	Sight // the zero Sight when it was not seen
}

// Find returns the tree of a bucket, nil when no second shard was seen.
func (f *Forest) Find(id *ShardID) *Tree {
	if f.size.Load() == 0 {
		return nil
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.trees[*id]
}

// Saw notes a state of a shard that a lane saw. prefer is the shard at level
// schema.MaxShards that this process asks first.
func (f *Forest) Saw(id *ShardID, index, prefer int, what Sight) {
	s := what.State
	plain := index == 0 && (s == nil || !s.Shard.Sharded())
	if plain && f.size.Load() == 0 {
		return
	}
	if plain {
		f.drop(id)
		return
	}
	t := f.grow(id, prefer, what.At)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s == nil || s.Shard.Retired {
		delete(t.seen, index)
		return
	}
	t.seen[index] = what
}

// grow returns the tree of a bucket, which is added if there is none.
func (f *Forest) grow(id *ShardID, prefer int, now time.Time) *Tree {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees == nil {
		f.trees = make(map[ShardID]*Tree)
	}
	t, ok := f.trees[*id]
	if !ok {
		t = &Tree{ID: *id, seen: make(map[int]Sight), prefer: prefer, used: now}
		f.trees[*id] = t
		f.size.Store(int64(len(f.trees)))
	}
	return t
}

func (f *Forest) drop(id *ShardID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.trees, *id)
	f.size.Store(int64(len(f.trees)))
}

// All returns the trees in a fixed order, and drops those that were not used since before.
func (f *Forest) All(before time.Time) []*Tree {
	if f.size.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*Tree
	for _, id := range slices.SortedFunc(maps.Keys(f.trees), compare) {
		t := f.trees[id]
		t.mu.Lock()
		idle := t.used.Before(before)
		t.mu.Unlock()
		if idle {
			delete(f.trees, id)
			continue
		}
		all = append(all, t)
	}
	f.size.Store(int64(len(f.trees)))
	return all
}

func compare(a, b ShardID) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Bucket.Entity, b.Bucket.Entity),
		cmp.Compare(a.Bucket.Resource, b.Bucket.Resource), cmp.Compare(a.Bucket.Variant, b.Bucket.Variant),
		cmp.Compare(a.Bucket.Window.Start, b.Bucket.Window.Start), cmp.Compare(a.Bucket.Window.End, b.Bucket.Window.End), cmp.Compare(a.Bucket.Window.Calendar, b.Bucket.Window.Calendar))
}

// Leaves returns the shards that give tokens, as far as is known, by their indexes.
func (t *Tree) Leaves() []Leaf {
	t.mu.Lock()
	defer t.mu.Unlock()
	var leaves []Leaf
	var walk func(index, level int)
	walk = func(index, level int) {
		seen := t.seen[index]
		s := schema.Shard{Index: index, Level: level}
		if seen.State != nil && seen.State.Shard.Level >= level {
			s = seen.State.Shard
		}
		for level < s.Level {
			level *= 2
			walk(index+level/2, level)
		}
		leaves = append(leaves, Leaf{Shard: s, Sight: seen})
	}
	walk(0, 1)
	slices.SortFunc(leaves, func(a, b Leaf) int { return cmp.Compare(a.Index, b.Index) })
	return leaves
}

// First returns the leaf that this process asks first.
func (t *Tree) First(leaves []Leaf, now time.Time) Leaf {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = now
	for i := range leaves {
		if t.prefer%leaves[i].Level == leaves[i].Index {
			return leaves[i]
		}
	}
	return leaves[0]
}

// gather reports whether a request may take from several shards now. A process has one at a time do so, and none
// within CrowdedPause of a time when a second one wanted to. Where all shards are nearly empty, others would only take
// tokens from each other that none of them can use, and be late.
func (t *Tree) gather(now time.Time) bool {
	if t.hasCrowd(now) { // rule: where requests take tokens from each other one seldom tries
		return false
	}
	if !t.gathering.CompareAndSwap(false, true) { // rule: one request of a process takes from several shards
		t.crowded.Store(now.UnixNano())
		return false
	}
	return true
}

// hasCrowd reports whether two requests wanted to within CrowdedPause. Where the time of day was set back meanwhile,
// nothing is known.
func (t *Tree) hasCrowd(now time.Time) bool {
	since := now.UnixNano() - t.crowded.Load()
	return since >= 0 && since < CrowdedPause.Nanoseconds()
}

// Favor has a shard asked first from now on.
func (t *Tree) Favor(index int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefer = index
}

// Mergeable returns the leaves that can be merged into their heirs: both are leaves of one
// split, and have been quiet for long enough.
func Mergeable(leaves []Leaf, now time.Time, quiet time.Duration) []int {
	var calm [schema.MaxShards]int // levels by index
	for i := range leaves {
		if l := &leaves[i]; l.State != nil && !l.State.Shard.Moving && !l.State.Shard.Retired && now.Sub(l.Quiet) >= quiet {
			calm[l.Index] = l.Level
		}
	}
	var pairs []int
	for i, level := range calm {
		if level > 1 && i >= level/2 && calm[i-level/2] == level {
			pairs = append(pairs, i)
		}
	}
	return pairs
}
