package embedded

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// settlements are the marks and secrets of a store.
type settlements struct {
	cfg     *Config
	disk    *disk // nil without a file
	marks   marks
	secrets secrets
}

// newSettlements returns empty settlements. Without a file the disk is nil.
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

// Settle implements limiter.Store. Times count to the millisecond.
func (s *settlements) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	if err := contextErr(ctx); err != nil {
		return false, err
	}
	if err := limiter.CheckMark(m); err != nil {
		return false, err
	}
	s.marks.noteTime(now.UnixMilli())
	won, err := s.claim(&m)
	if err != nil || !won || s.disk == nil {
		return won, err
	}
	kept := mark{owner: m.Owner, expires: m.Expires.UnixMilli()}
	err = s.disk.write(ctx, kept.put(markName(&m)))
	return err == nil, err
}

// owner returns the owner of a mark that has not expired, and whether there is one.
func (s *settlements) owner(m *limiter.Mark, now int64) (string, bool, error) {
	sh := s.marks.markShard(m.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.marks == nil {
		return "", false, limiter.ErrClosed
	}
	held, found := sh.marks[markName(m)]
	return held.owner, found && held.expires > now, nil
}

// rewrite changes the owner of a mark that claim has made in memory.
func (s *settlements) rewrite(m *limiter.Mark, owner string) {
	name, sh := markName(m), s.marks.markShard(m.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held, found := sh.marks[name]; found && held.owner == m.Owner {
		sh.marks[name] = mark{owner: strings.Clone(owner), expires: held.expires}
	}
	m.Owner = owner
}

// claim makes the mark in memory, and reports whether m.Owner owns it.
func (s *settlements) claim(m *limiter.Mark) (bool, error) {
	name, expires := markName(m), m.Expires.UnixMilli()
	sh := s.marks.markShard(m.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.marks == nil {
		return false, limiter.ErrClosed
	}
	// latest is read under the lock. A mark that a sweep has dropped had expired by then.
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

// unclaim deletes a mark that claim has made in memory, and that is not in the file.
func (s *settlements) unclaim(m *limiter.Mark) {
	name, sh := markName(m), s.marks.markShard(m.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held, found := sh.marks[name]; found && held.owner == m.Owner {
		delete(sh.marks, name)
		s.marks.count.Add(-1)
	}
}

// Marks returns the number of marks in memory.
func (s *settlements) Marks() int64 { return s.marks.count.Load() }

// sweepMarks drops the expired marks in the shards from first up to end. It returns the batch that
// deletes them from the file, nil for none.
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
					key, _ := keyOf([]byte(name))
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

// Secret implements limiter.Store. The secret is stable as long as the store exists.
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
