package engine

import (
	"context"
	"log/slog"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Renew gives the store the items of another history of its server. The server may have lost its last
// writes, or all. Plans and leases of before are neither applied nor served from then on:
//
//   - The buckets get another engine. Calls that wait are sent to the new one.
//   - Each bucket is brought up to the newest state that this process remembers: before its first take,
//     and without one in the background.
//   - Records and namespaces are read again. generation is above all before, and subscribers are told
//     that any record may have changed.
//
// lost reports whether the item of a key may be older than it was, or gone; nil = each may be. Buckets that are
// none of these are taken from at once.
//
// It does not block.
func (s *Store) Renew(items awsdb.Items, generation uint64, lost func(schema.Key) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	next, err := New(Config{StoreConfig: s.cfg, Items: s.guard.For(items), Namespace: s.NamespaceID, Before: &s.before})
	if err != nil { // the same configuration was good at the start
		s.log().Error("the store cannot go on with its server", slog.Any("error", err))
		return
	}
	s.log().Warn("the server of the store has another history: it may have lost what was written last")
	old := s.engine.Load()
	h := newHealing(s, old.Memories(), s.last, lost)
	s.last = h
	s.histories++
	s.healing.Store(h)
	s.engine.Store(next)
	s.leaving = append(s.leaving, old)
	s.Forget(generation)
	s.renewing.Go(func() {
		old.HandOver(next)
		s.left(old)
	})
	s.renewing.Go(func() { h.run() })
}

// left keeps the counts of an engine that has ended.
func (s *Store) left(e *Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.DeleteFunc(s.leaving, func(o *Engine) bool { return o == e })
	s.past = e.Stats().After(s.past) // rule: what an engine loses at its end is counted
}

// healed ends the work of Renew. The store is closed.
func (s *Store) healed() {
	s.mu.Lock()
	h := s.last
	s.mu.Unlock()
	if h != nil {
		h.stop()
	}
	s.renewing.Wait()
}

// log returns the logger of the configuration, or one that writes nothing.
func (s *Store) log() *slog.Logger {
	if s.cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.cfg.Logger
}

// heal brings one bucket up to the state that this process remembers.
func (s *Store) heal(ctx context.Context, m *memory) (bool, error) {
	ns, err := s.NamespaceID(ctx, m.Site.Bucket.Namespace)
	if err != nil {
		return false, err
	}
	return s.balances.Heal(ctx, ns, &m.Memory)
}
