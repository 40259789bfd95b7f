package dynamo_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Of more replicas than an item has place for, some hold leases, and the others decide
// like those without: nothing fails, and nobody is denied for it.
func TestHoldersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const replicas = dynamo.MaxHolders + 8
		db := newTable(t)
		stores := make([]*dynamo.Store, replicas)
		for i := range stores {
			stores[i] = newStore(t, db, withLeases)
			defer closing(t, stores[i])
		}
		most := 0
		for range 20 {
			for i, s := range stores {
				for range 5 {
					mustTake(t, s, time.Now(), true, daily(t, 1_000_000_000, 1))
				}
				held := bucketItem(t, db)
				maps.DeleteFunc(held, func(name, _ string) bool { return !strings.HasPrefix(name, "ls_") })
				if most = max(most, len(held)); len(held) > dynamo.MaxHolders {
					t.Fatalf("after store %d: %d holders, want at most %d", i, len(held), dynamo.MaxHolders)
				}
				time.Sleep(2 * time.Millisecond)
			}
		}
		if most < dynamo.MaxHolders {
			t.Errorf("at most %d holders of %d replicas: the test shows nothing", most, replicas)
		}
	})
}

// The place of a holder that is no more is another's: at its end it is given back, and
// after a crash it is freed.
func TestAPlaceOfAHolderIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		o := daily(t, 1_000_000_000, 1)
		gone := make([]*dynamo.Store, dynamo.MaxHolders)
		for i := range gone {
			gone[i] = newStore(t, db, withLeases)
			defer closing(t, gone[i])
			warm(t, gone[i], time.Now(), o)
		}
		next := newStore(t, db, withLeases)
		defer closing(t, next)
		for range 20 {
			mustTake(t, next, time.Now(), true, o)
		}
		if got := next.Stats(); got.Granted != 0 {
			t.Fatalf("%+v, want no lease: all places are taken", got)
		}
		closing(t, gone[0])
		warm(t, next, time.Now(), o)
	})
}
