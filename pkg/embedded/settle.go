package embedded

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// markShards keeps a sweep of one shard short: it has some 20,000 marks at most.
const markShards = 256

// marks are who settled which reservation.
type marks struct {
	seed   maphash.Seed
	latest atomic.Int64 // time of a call, Unix ms
	count  atomic.Int64
	shards [markShards]markShard
}

// settlements are the marks and secrets of a store.
type settlements struct {
	cfg     *Config
	disk    *disk // nil without a file
	marks   marks
	secrets secrets
}

// newSettlements returns none. Without a file the disk is nil.
func newSettlements(cfg *Config, d *disk) *settlements {
	s := &settlements{cfg: cfg, disk: d}
	s.marks.init()
	s.secrets.init()
	return s
}

func (s *settlements) close() {
	s.marks.close()
	s.secrets.close()
}

// markShard is a part of the marks, found by hash of the ID. A nil map says that the
// store is closed.
type markShard struct {
	mu    sync.Mutex
	marks map[string]mark // by markName
	_     [48]byte        // a cache line of its own
}

type mark struct {
	owner   string
	expires int64 // Unix ms
}

// markName tells marks apart by ID and namespace, in one string to save memory. The
// first byte is the ID's length, so that no ID reaches into a namespace.
func markName(m *limiter.Mark) string {
	return string([]byte{byte(len(m.ID))}) + m.ID + m.Namespace // #nosec G115 -- at most MaxMarkLength
}

// Settle implements limiter.Store. Times count to the millisecond.
func (s *settlements) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	if err := contextErr(ctx); err != nil {
		return false, err
	}
	if err := limiter.CheckMark(m); err != nil {
		return false, err
	}
	s.marks.saw(now.UnixMilli())
	won, err := s.claim(&m)
	if err != nil || !won || s.disk == nil {
		return won, err
	}
	name := markName(&m)
	kept := mark{owner: m.Owner, expires: m.Expires.UnixMilli()}
	err = s.disk.write(ctx, kept.put(name))
	return err == nil, err
}

func (k *marks) markShard(id string) *markShard {
	return &k.shards[maphash.String(k.seed, id)%markShards]
}

// claim makes the mark in memory, and reports whether it is its owner's.
func (s *settlements) claim(m *limiter.Mark) (bool, error) {
	name, expires := markName(m), m.Expires.UnixMilli()
	sh := s.marks.markShard(m.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.marks == nil {
		return false, limiter.ErrClosed
	}
	// Read under the lock: by any time that a sweep has dropped marks, theirs are over.
	if s.marks.latest.Load() >= expires {
		return false, nil
	}
	if held, found := sh.marks[name]; found {
		return held.owner == m.Owner, nil
	}
	if n := s.marks.count.Add(1); n > s.cfg.MaxMarks {
		s.marks.count.Add(-1)
		return false, fmt.Errorf("%w: the embedded store holds its maximum of %d marks of settlements; give reservations a shorter lifetime", limiter.ErrUnavailable, s.cfg.MaxMarks)
	}
	sh.marks[name] = mark{owner: strings.Clone(m.Owner), expires: expires}
	return true, nil
}

// Marks returns the number of marks held now.
func (s *settlements) Marks() int64 { return s.marks.count.Load() }

func (k *marks) init() {
	k.seed = maphash.MakeSeed()
	k.latest.Store(math.MinInt64)
	for i := range k.shards {
		k.shards[i].marks = make(map[string]mark)
	}
}

// saw notes the time of a call.
func (k *marks) saw(now int64) {
	for {
		latest := k.latest.Load()
		if latest >= now || k.latest.CompareAndSwap(latest, now) {
			return
		}
	}
}

// markSlack is how much longer than they count marks are kept where the process may
// begin again by a clock that was set back.
const markSlack = 2 * time.Hour

// sweepMarks drops the marks, in the shards from first up to end, that have expired. It
// returns the batch that the file forgets them in, nil for none.
func (s *settlements) sweepMarks(first, end int) *batch {
	var slack int64
	if s.disk != nil {
		slack = markSlack.Milliseconds()
	}
	var gone []change
	k := &s.marks
	for i := first; i < end; i++ {
		sh := &k.shards[i]
		sh.mu.Lock()
		latest := k.latest.Load()
		for name, m := range sh.marks {
			if s.disk != nil && len(gone) == sweptRows {
				break
			}
			if m.expires <= latest-slack && latest > math.MinInt64 {
				delete(sh.marks, name)
				k.count.Add(-1)
				if s.disk != nil {
					key, _ := identified([]byte(name))
					gone = append(gone, change{table: datafile.Settled, key: key})
				}
			}
		}
		sh.mu.Unlock()
	}
	if len(gone) == 0 {
		return nil
	}
	return s.disk.ask(gone...)
}

func (k *marks) close() {
	for i := range k.shards {
		sh := &k.shards[i]
		sh.mu.Lock()
		k.count.Add(-int64(len(sh.marks)))
		sh.marks = nil
		sh.mu.Unlock()
	}
}

// secrets are what Secret returns, by name.
type secrets struct {
	mu     sync.Mutex
	byName map[string][]byte // nil = closed
}

func (k *secrets) init() { k.byName = make(map[string][]byte) }

func (k *secrets) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byName = nil
}

// Secret implements limiter.Store. The secret lives as long as the store.
func (s *settlements) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	if err := contextErr(ctx); err != nil {
		return nil, err
	}
	if err := limiter.CheckSecret(name, candidate); err != nil {
		return nil, err
	}
	k := &s.secrets
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byName == nil {
		return nil, limiter.ErrClosed
	}
	if secret, found := k.byName[name]; found {
		return secret, nil
	}
	secret := slices.Clone(candidate)
	if s.disk != nil {
		if err := s.disk.write(context.WithoutCancel(ctx), change{datafile.Meta, []byte(secretPrefix + name), secret}); err != nil {
			return nil, err
		}
	}
	k.byName[strings.Clone(name)] = secret
	return secret, nil
}
