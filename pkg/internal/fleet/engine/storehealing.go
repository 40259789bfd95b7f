package engine

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// healers is how many buckets are healed at a time in the background.
	healers = 64
	// healPause is how long a healer waits after an error.
	healPause = 100 * time.Millisecond
	// quiet is how long no bucket is taken from in a new history. Other replicas may remember more of a bucket
	// than this one. They notice the history, and heal their buckets, within this time.
	quiet = 250 * time.Millisecond
	// healFor is how long memories are kept. A server may be away again before all buckets are healed, and
	// may lose them again after that.
	healFor = 5 * time.Minute
	// healTimeout bounds the healing of one bucket in the background.
	healTimeout = 2 * time.Second
)

// memory is a bucket to heal.
type memory struct {
	lane.Memory

	busy chan struct{} // closed when the one who heals it is done; nil = nobody does
}

// healing are the buckets that this process remembers, and has not brought up to that yet after its
// server came back with another history. It is safe for concurrent use.
type healing struct {
	store *Store
	ctx   context.Context //nolint:containedctx // of the healing: done when it ends
	stop  context.CancelFunc
	still chan struct{}         // closed when the quiet time is over
	lost  func(schema.Key) bool // whether an item may be lost, in part or whole; nil = each may be

	mu     sync.Mutex
	kept   map[limiter.BucketKey][]*memory // all, until the healing ends
	left   map[limiter.BucketKey][]*memory // of them, those that are not healed yet
	healed int
}

// newHealing returns the healing of those memories that are lost, and of those that another healing has left; nil = none.
// The other memories are kept: their server may be the next one.
func newHealing(s *Store, memories []lane.Memory, before *healing, lost func(schema.Key) bool) *healing {
	h := &healing{store: s, still: make(chan struct{}), lost: lost, kept: make(map[limiter.BucketKey][]*memory, len(memories))}
	time.AfterFunc(quiet, func() { close(h.still) })
	h.ctx, h.stop = context.WithTimeout(context.Background(), healFor)
	var left map[limiter.BucketKey][]*memory
	if before != nil {
		h.kept, left = before.memories() // first: the end of that healing clears them
		before.stop()
		h.lost = before.orLost(lost)
	}
	for i := range memories {
		h.remember(&memories[i])
	}
	h.left = make(map[limiter.BucketKey][]*memory)
	for key, kept := range h.kept {
		if left[key] != nil || lost == nil || lost(kept[0].Site.Key(kept[0].Index)) { // rule: a bucket whose server has lost nothing keeps what it has
			h.left[key] = kept
		}
	}
	return h
}

// orLost reports of an item whether a new change may have lost it, or that of this healing while its quiet time lasts.
func (h *healing) orLost(lost func(schema.Key) bool) func(schema.Key) bool {
	select {
	case <-h.still:
		return lost
	default:
	}
	if lost == nil || h.lost == nil {
		return nil
	}
	return func(k schema.Key) bool { return lost(k) || h.lost(k) }
}

// remember keeps the last state of a shard. That may be from before the shard was healed, so that the tokens of the
// memory before stay taken.
func (h *healing) remember(seen *lane.Memory) {
	key := seen.Site.Bucket
	is := &memory{Memory: *seen}
	h.kept[key] = slices.DeleteFunc(h.kept[key], func(was *memory) bool {
		if was.Index != seen.Index {
			return false
		}
		change, err := plan.Heal(is.State, was.State, h.store.cfg.Clock.Correct(h.store.cfg.Now()).UnixMilli())
		if err == nil && change != nil {
			is.State = change.After() // rule: what was remembered before stays taken
		}
		return true
	})
	h.kept[key] = append(h.kept[key], is)
}

// memories returns all memories, and those that are not healed yet, for another healing.
func (h *healing) memories() (all, left map[limiter.BucketKey][]*memory) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all = make(map[limiter.BucketKey][]*memory, len(h.kept))
	for key, kept := range h.kept {
		for _, m := range kept {
			all[key] = append(all[key], &memory{Memory: m.Memory})
		}
	}
	return all, maps.Clone(h.left)
}

// before heals the buckets of ops, if they are left, and waits for the end of the quiet time of those that may be lost.
func (h *healing) before(ctx context.Context, ops []limiter.Op) error {
	for i := range ops {
		of := &ops[i].Bucket
		if lost, err := h.mayBeLost(ctx, of); err != nil {
			return err
		} else if !lost {
			continue
		}
		select {
		case <-h.still: // rule: no bucket is taken from in the quiet time
		case <-ctx.Done():
			return awsdb.ContextError(ctx)
		}
		if err := h.heal(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// mayBeLost reports whether a bucket is one of those that the change of histories is about.
func (h *healing) mayBeLost(ctx context.Context, of *limiter.BucketKey) (bool, error) {
	if h.lost == nil || h.isLeft(of) {
		return true, nil
	}
	ns, err := h.store.NamespaceID(ctx, of.Namespace)
	return err == nil && h.lost(schema.BucketKey(ns, *of, 0)), err
}

// isLeft reports whether a bucket is to be healed yet.
func (h *healing) isLeft(of *limiter.BucketKey) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.left[*of]) > 0
}

// heal heals a bucket, if it is left. Of several callers one does, and the others wait.
func (h *healing) heal(ctx context.Context, key *limiter.BucketKey) error {
	for {
		h.mu.Lock()
		left := h.left[*key]
		if len(left) == 0 {
			h.mu.Unlock()
			return nil
		}
		m := left[0]
		if busy := m.busy; busy != nil {
			h.mu.Unlock()
			select {
			case <-busy:
				continue
			case <-ctx.Done():
				return awsdb.ContextError(ctx)
			}
		}
		m.busy = make(chan struct{})
		h.mu.Unlock()
		healed, err := h.store.heal(ctx, m)
		h.done(m, healed, err)
		if err != nil {
			return err
		}
	}
}

// done ends the healing of one shard.
func (h *healing) done(m *memory, healed bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(m.busy)
	m.busy = nil
	if healed {
		h.healed++
		h.store.healedBuckets.Add(1)
	}
	if err != nil {
		return
	}
	key := m.Site.Bucket
	rest := slices.DeleteFunc(slices.Clone(h.left[key]), func(o *memory) bool { return o == m })
	if h.left[key] = rest; len(rest) == 0 {
		delete(h.left, key)
	}
}

// run heals all buckets, and keeps the memories until the healing ends.
func (h *healing) run() {
	h.healAll()
	<-h.ctx.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.kept)
}

// healAll heals all buckets, until that is done or the healing ends.
func (h *healing) healAll() {
	began := h.store.cfg.Now()
	keys := make(chan limiter.BucketKey)
	var work sync.WaitGroup
	for range healers {
		work.Go(func() {
			for key := range keys {
				h.patiently(key)
			}
		})
	}
	all := h.toHeal()
	newest := slices.SortedFunc(maps.Keys(all), func(a, b limiter.BucketKey) int { return cmp.Compare(lastTaken(all[b]), lastTaken(all[a])) })
	for _, key := range newest { // what the server has lost are the last takes
		keys <- key
	}
	close(keys)
	work.Wait()
	select {
	case <-h.still:
	case <-h.ctx.Done(): // another history takes its place, or the store is closed
	}
	h.store.healing.CompareAndSwap(h, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store.log().Warn("the server of the store came back with another history; buckets were brought up to what this process remembers",
		slog.Int("remembered", len(all)), slog.Int("changed", h.healed), slog.Int("left", len(h.left)), slog.Duration("took", h.store.cfg.Now().Sub(began).Round(time.Millisecond)))
}

// toHeal returns the memories that are not healed yet.
func (h *healing) toHeal() map[limiter.BucketKey][]*memory {
	_, left := h.memories()
	return left
}

// lastTaken returns when a bucket was last taken from, Unix ms.
func lastTaken(shards []*memory) int64 {
	latest := int64(math.MinInt64)
	for _, m := range shards {
		latest = max(latest, m.State.Taken)
	}
	return latest
}

// patiently heals a bucket, as often as it takes. A bucket that cannot be read is left as it is.
func (h *healing) patiently(key limiter.BucketKey) {
	for h.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(h.ctx, healTimeout)
		err := h.heal(ctx, &key)
		cancel()
		if err == nil || !awsdb.MayPass(err) {
			return
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(healPause):
		}
	}
}
