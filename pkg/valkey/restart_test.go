package valkey_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// losses are the ways in which a server loses all that it has.
var losses = map[string]func(*valkeytest.Server){
	"restart": func(s *valkeytest.Server) {
		s.Kill()
		s.Restart()
	},
	"FLUSHALL": func(s *valkeytest.Server) { s.Must("FLUSHALL") },
}

// A server that lost all is refused until there is a table again. Then the store goes on by itself.
func TestLossIsRefused(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := valkeytest.Start(t)
			var cfg valkey.Config
			change := func(c *valkey.Config) { cfg = *c }
			_, over := under(t, server.Address, change, func(l *load) {
				lose(server)
				l.refused(t)
				if made, err := valkey.Create(t.Context(), cfg); !made || err != nil {
					t.Errorf("Create: %v, %v", made, err)
				}
			})
			if most := int64(loadReplicas * loadCallers); over > most {
				t.Errorf("%d tokens too many, want at most a write of each replica: %d", over, most)
			}
		})
	}
}

// refused waits until each store is unavailable for want of its table.
func (l *load) refused(t *testing.T) {
	t.Helper()
	for i, s := range l.stores {
		lost := func() bool {
			state := s.State()
			return state.Condition.String() == "unavailable" && errors.Is(state.Cause, valkey.ErrLost)
		}
		for end := time.Now().Add(recovery); !lost(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("the store %d is not unavailable because of the lost table: %+v", i, s.State())
				return
			}
		}
	}
	before := l.admitted.Load()
	time.Sleep(settle)
	if n := l.admitted.Load() - before; n != 0 {
		t.Errorf("%d tokens were admitted without a table", n)
	}
	says := func() bool {
		err := *l.failure.Load()
		return errors.Is(err, limiter.ErrUnavailable) && strings.Contains(err.Error(), "lost the table")
	}
	for end := time.Now().Add(recovery); !says(); time.Sleep(time.Millisecond) { // a busy machine has other causes between
		if time.Now().After(end) {
			t.Errorf("a take fails with %v, want one that says that the table is lost", *l.failure.Load())
			return
		}
	}
}

// A store that makes a new table by itself gives nothing twice that a replica remembers.
func TestLossIsHealed(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
				server := valkeytest.Start(t)
				change := func(c *valkey.Config) {
					leases(c)
					c.Recreate = true
				}
				_, over := under(t, server.Address, change, func(*load) { lose(server) })
				if most := int64(loadReplicas * loadCallers); over > most {
					t.Errorf("%d tokens too many, want at most a write of each replica: %d", over, most)
				}
			})
		})
	}
}

// The scripts of a server are no data: nothing fails without them.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		server := valkeytest.Start(t)
		l, over := under(t, server.Address, change, func(*load) {
			for range 5 {
				server.Must("SCRIPT", "FLUSH")
				time.Sleep(100 * time.Millisecond)
			}
		})
		if over > 0 {
			t.Errorf("%d tokens too many", over)
		}
		if cause := l.failure.Load(); cause != nil {
			t.Errorf("%d calls failed, the last with %v", l.failed.Load(), *cause)
		}
	})
}

// A backup of the server's file that is put back is a server that comes back older: what a living replica
// remembers of a bucket is not given twice.
func TestARestoredFile(t *testing.T) {
	server := valkeytest.Start(t)
	s := onServer(t, server, nil)
	defer func() { _ = s.Close(t.Context()) }()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 10))
	if err != nil {
		t.Fatal(err)
	}
	take := func() bool {
		t.Helper()
		ops := []limiter.Op{{
			Bucket: limiter.BucketKey{Namespace: "ns", Entity: "e", Resource: "r"}, Limits: limits, Generation: 1,
			Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
		}}
		for {
			admitted, err := s.Take(t.Context(), time.Now(), ops)
			if err == nil {
				return admitted
			}
			if !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain) {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	file, backup := filepath.Join(server.Dir, "dump.rdb"), filepath.Join(t.TempDir(), "backup.rdb")
	for i := range 8 {
		if !take() {
			t.Fatalf("take %d was denied", i)
		}
		if i == 4 {
			server.Must("SAVE")
			if err := os.Rename(file, backup); err != nil {
				t.Fatal(err)
			}
		}
	}
	server.Kill()
	if err := os.Rename(backup, file); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	admitted := 0
	for range 5 {
		if take() {
			admitted++
		}
	}
	if admitted != 2 {
		t.Errorf("%d takes after the backup of half the limit, want the 2 that are left", admitted)
	}
}

// What a replica remembers is not given twice by another one that knows less, also where it makes no call itself. A
// machine that is too busy to heal in time gets another try.
func TestLossThatAnIdleReplicaHeals(t *testing.T) {
	const tries = 3
	for try := 1; ; try++ {
		twice := lossWithAnIdleReplica(t)
		if twice <= 0 {
			return
		}
		if try == tries {
			t.Fatalf("%d tokens were given twice, in the last of %d tries", twice, tries)
		}
	}
}

// lossWithAnIdleReplica has one replica take what another one has left of a bucket, and the server lose all. It
// returns how many tokens above the capacity the other one takes then.
func lossWithAnIdleReplica(t *testing.T) (twice int) {
	t.Helper()
	const capacity = 100
	p := newPair(t, func(cfg *valkey.Config) { cfg.Recreate = true })
	take := func(s *valkey.Store) (n int) {
		for range 2 * capacity {
			switch admitted, err := takeFrom(s, "e"); {
			case err != nil: // no call is decided at first
			case !admitted:
				return n
			default:
				n++
			}
		}
		return n
	}
	if admitted, err := takeFrom(p.first, "e"); !admitted || err != nil {
		t.Fatalf("take: %t, %v", admitted, err)
	}
	taken := 1 + take(p.second)
	p.server.Must("FLUSHALL")
	return taken + take(p.first) - capacity
}
