package valkey_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A server that is a replica for a time takes nothing then, and is used again afterwards.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		server := valkeytest.Start(t)
		_, over := under(t, server.Address, change, func(*load) {
			server.Must("REPLICAOF", "127.0.0.1", "1")
			time.Sleep(time.Second)
			server.Must("REPLICAOF", "NO", "ONE")
		})
		if over > 0 {
			t.Errorf("%d tokens too many", over)
		}
	})
}

// A server that fails, follows its successor, and takes its place again has scripts of its past. Nothing is given twice.
func TestFailback(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		first, second := valkeytest.Start(t), valkeytest.Start(t)
		second.Follow(first)
		proxy := valkeytest.NewProxy(t, first.Address)
		l, over := under(t, proxy.Address, change, func(l *load) {
			first.Must("CLIENT", "PAUSE", "50", "WRITE") // so that the second one has all
			time.Sleep(30 * time.Millisecond)
			second.Must("REPLICAOF", "NO", "ONE")
			proxy.Point(second.Address)
			l.awaitDecision(t)
			first.Follow(second)
			time.Sleep(settle)
			second.Must("CLIENT", "PAUSE", "50", "WRITE")
			time.Sleep(30 * time.Millisecond)
			first.Must("REPLICAOF", "NO", "ONE")
			proxy.Point(first.Address)
		})
		if over > 0 {
			t.Errorf("%d tokens too many", over)
		}
		if n := l.stores[0].State().Condition; n != 0 {
			t.Errorf("the store is %+v", l.stores[0].State())
		}
	})
}

// A server that was cut off, and comes back as it was then, has the scripts and the history of its past.
func TestReturnOfThePast(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
		first, second := valkeytest.Start(t), valkeytest.Start(t)
		second.Follow(first)
		proxy := valkeytest.NewProxy(t, first.Address)
		_, over := under(t, proxy.Address, change, func(l *load) {
			second.Must("REPLICAOF", "NO", "ONE")
			proxy.Point(second.Address)
			l.awaitDecision(t)
			time.Sleep(settle)
			proxy.Point(first.Address)
		})
		if most := int64(2 * loadReplicas * loadCallers); over > most {
			t.Errorf("%d tokens too many, want at most a write of each replica for each of two servers: %d", over, most)
		}
	})
}

// A connection that is kept by a server that became a replica is given up for one to the primary, also
// when the replica does not know the script.
func TestConnectionToReplica(t *testing.T) {
	t.Parallel()
	first, second := valkeytest.Start(t), valkeytest.Start(t)
	second.Follow(first)
	proxy := valkeytest.NewProxy(t, first.Address)
	_, over := under(t, proxy.Address, func(*valkey.Config) {}, func(l *load) {
		proxy.Point(second.Address) // still a replica, without the script
		time.Sleep(300 * time.Millisecond)
		proxy.Lead(first.Address) // for new connections alone
	})
	if most := int64(loadReplicas * loadCallers); over > most {
		t.Errorf("%d tokens too many", over)
	}
}
