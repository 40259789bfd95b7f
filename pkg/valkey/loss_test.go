package valkey_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// pair are two stores on a table. The second one subscribes to changes.
type pair struct {
	t      *testing.T
	server *valkeytest.Server
	cfg    valkey.Config
	first  *valkey.Store
	second *valkey.Store
	told   atomic.Int64 // notices that anything may have changed
}

var ofEntity = limiter.EntityLimitsRef("e", "r")

func newPair(t *testing.T, change func(*valkey.Config)) *pair {
	t.Helper()
	p := &pair{t: t, server: valkeytest.Start(t)}
	p.cfg = configOf(t, p.server, func(cfg *valkey.Config) {
		cfg.Attempt, cfg.Budget = 0, 0
		change(cfg)
	})
	p.first, p.second = p.open(), p.open()
	p.second.Subscribe(func(c limiter.Change) {
		if c.Refs == nil {
			p.told.Add(1)
		}
	})
	return p
}

func (p *pair) open() *valkey.Store {
	p.t.Helper()
	s, err := valkey.Open(p.t.Context(), p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close(p.t.Context()) })
	return s
}

// put stores an entity and its limits.
func (p *pair) put() {
	p.t.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("l", 5))
	if err == nil {
		_, err = p.first.PutEntity(p.t.Context(), time.Now(), "ns", limiter.Entity{ID: "e"})
	}
	if err == nil {
		err = p.first.PutLimits(p.t.Context(), "ns", ofEntity, limiter.Record{Limits: limits})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// read reads the entity and its limits by a store.
func (p *pair) read(s *valkey.Store) (entity, limits bool, generation uint64, err error) {
	records := make([]limiter.Record, 2)
	generation, err = s.Read(p.t.Context(), "ns", []limiter.Ref{limiter.EntityRef("e"), ofEntity}, records)
	return records[0].Entity != nil, records[1].Limits != nil, generation, err
}

// Stored limits that are lost are never read as limits that there are not, while the loss of the table
// is refused. They are gone with the new table, at a generation that is greater than before.
func TestLossOfLimits(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		for _, recreate := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", create", true: ", recreate"}[recreate], func(t *testing.T) {
				t.Parallel()
				loseLimits(t, recreate, lose)
			})
		}
	}
}

func loseLimits(t *testing.T, recreate bool, lose func(*valkeytest.Server)) {
	t.Helper()
	p := newPair(t, func(cfg *valkey.Config) { cfg.Recreate = recreate })
	p.put()
	entity, limits, before, err := p.read(p.second)
	if !entity || !limits || err != nil {
		t.Fatalf("read %t, %t, %v before the loss", entity, limits, err)
	}
	lose(p.server)
	if !recreate {
		for range 30 {
			if entity, limits, _, err = p.read(p.second); !errors.Is(err, limiter.ErrUnavailable) {
				t.Fatalf("read %t, %t, %v without a table, want an error", entity, limits, err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		if made, err := valkey.Create(t.Context(), p.cfg); !made || err != nil {
			t.Fatalf("Create: %v, %v", made, err)
		}
	}
	p.awaitGone(before)
	for end := time.Now().Add(recovery); p.told.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the subscriber was not told")
		}
	}
	p.put()
	if entity, limits, after, err := p.read(p.first); !entity || !limits || err != nil || after <= before {
		t.Errorf("read %t, %t, %v after another change at %d, want both above %d", entity, limits, err, after, before)
	}
}

// awaitGone waits until both stores read that the limits are gone.
func (p *pair) awaitGone(before uint64) {
	p.t.Helper()
	for _, s := range []*valkey.Store{p.first, p.second} {
		for end := time.Now().Add(recovery); ; time.Sleep(5 * time.Millisecond) {
			entity, limits, after, err := p.read(s)
			if err == nil && !entity && !limits && after > before {
				break
			}
			if time.Now().After(end) {
				p.t.Fatalf("read %t, %t, %v at the generation %d; want none, above %d", entity, limits, err, after, before)
			}
		}
	}
}

// A table that was lost and made again, while a replica was silent, is not the one that this replica
// knows.
func TestLossThatIsMissed(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, func(*valkey.Config) {})
			p.put()
			_, _, before, err := p.read(p.second)
			if err != nil {
				t.Fatal(err)
			}
			lose(p.server)
			if made, err := valkey.Create(t.Context(), p.cfg); !made || err != nil {
				t.Fatalf("Create: %v, %v", made, err)
			}
			p.awaitGone(before)
		})
	}
}
