package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// listener is a subscriber that records its notifications.
type listener struct {
	mu      sync.Mutex
	changes []limiter.Change
}

func listen(c *Catalog) *listener {
	l := new(listener)
	c.Subscribe(func(ch limiter.Change) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changes = append(l.changes, ch)
	})
	return l
}

// want requires the notifications since the last call. Later reads must be of the
// last notified generation, or later.
func (l *listener) want(t *testing.T, c *Catalog, what string, want ...limiter.Change) {
	t.Helper()
	l.mu.Lock()
	got := l.changes
	l.changes = nil
	l.mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: notified (-want +got):\n%s", what, diff)
	}
	if _, generation := read(t, c); len(got) > 0 && generation < got[len(got)-1].Generation {
		t.Errorf("%s: notified of generation %d, then read at %d", what, got[len(got)-1].Generation, generation)
	}
}

// told is the change that the subscriber is told of where changes, the counter, has a value
// and no configuration was raised.
func told(changes uint64, refs ...limiter.Ref) limiter.Change {
	return toldRaised(changes, 0, refs...)
}

// toldRaised is the same after raises of the counter of configurations.
func toldRaised(changes, configuration uint64, refs ...limiter.Ref) limiter.Change {
	return limiter.Change{Namespace: ns, Generation: schema.Counters{Changes: changes, Configuration: configuration}.Generation(), Refs: refs}
}

func poll(t *testing.T, c *Catalog) {
	t.Helper()
	if err := c.poll(t.Context()); err != nil {
		t.Fatalf("poll: %v", err)
	}
}

func raise(t *testing.T, c *Catalog) {
	t.Helper()
	if err := c.RaiseGeneration(t.Context()); err != nil {
		t.Fatalf("RaiseGeneration: %v", err)
	}
}

// TestTold: the notifications to the subscribers of two replicas, and their times.
func TestTold(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	toA, toB := listen(a), listen(b)
	read(t, a)
	read(t, b)
	x, y, z := limiter.ResourceLimitsRef("x"), limiter.EntityLimitsRef("k\xff", "y#"), limiter.SystemLimitsRef()

	putPerDay(t, a, x, 1)
	toA.want(t, a, "own change", told(1, x))
	poll(t, a)
	toA.want(t, a, "look after an own change")

	putPerDay(t, a, y, 1)
	toA.want(t, a, "second own change", told(2, y))
	toB.want(t, b, "before a look")
	poll(t, b)
	toB.want(t, b, "two changes of another", told(2, x, y))
	poll(t, b)
	toB.want(t, b, "look without a change")

	putPerDay(t, a, x, 2)
	toA.want(t, a, "own change", told(3, x))
	putPerDay(t, b, z, 2) // does not know of the one before
	toB.want(t, b, "own change after one that was missed", told(4))
	poll(t, b)
	toB.want(t, b, "look after it")

	raise(t, a)
	toA.want(t, a, "own raise, while a change of another is not known", toldRaised(3, 1))
	poll(t, a)
	toA.want(t, a, "change of another", toldRaised(4, 1, z))
	poll(t, b)
	toB.want(t, b, "raise by another: no record changed")
}

// TestToldAfterAGap: where the record of a change is gone, or names no records, the
// notification says that anything may have changed.
func TestToldAfterAGap(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	toB := listen(b)
	read(t, b)
	sp, err := b.use(t.Context(), ns)
	if err != nil {
		t.Fatalf("use: %v", err)
	}
	ref := limiter.ResourceLimitsRef("r")
	for i, broken := range []uint64{1, 2, 3} { // of three changes each
		for range 3 {
			putPerDay(t, a, ref, 1)
		}
		k := schema.ChangeKey(sp.id, uint64(3*i)+broken) // #nosec G115 -- small
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &a.table.name, Key: k.Attributes()}); err != nil {
			t.Fatalf("DeleteItem: %v", err)
		}
		poll(t, b)
		toB.want(t, b, fmt.Sprintf("change %d of 3 has expired", broken), told(uint64(3*i+3)))
	}
	for range maxMissedChanges + 1 {
		putPerDay(t, a, ref, 1)
	}
	poll(t, b)
	toB.want(t, b, "too many changes", told(9+maxMissedChanges+1))
	putPerDay(t, a, limiter.ResourceLimitsRef(strings.Repeat("n", schema.MaxNameAttribute*schema.MaxChangeRefs)), 1)
	poll(t, b)
	toB.want(t, b, "a change of a name that is too long", told(9+maxMissedChanges+2))
}

// TestToldOfACorruptChange: the notification says that anything may have changed, and
// the log names the corrupt item; other namespaces go on.
func TestToldOfACorruptChange(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	toB := listen(b)
	read(t, b)
	sp, err := b.use(t.Context(), ns)
	if err != nil {
		t.Fatalf("use: %v", err)
	}
	putPerDay(t, a, limiter.SystemLimitsRef(), 1)
	record := schema.ChangeKey(sp.id, 1).Attributes()
	record[schema.AttrRefs] = avS("everything")
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &a.table.name, Item: record}); err != nil {
		t.Fatalf("PutItem: %v", err)
	}
	if err := b.poll(t.Context()); err == nil || !strings.Contains(err.Error(), schema.ChangeKey(sp.id, 1).String()) {
		t.Errorf("poll: error %v does not name the item", err)
	}
	toB.want(t, b, "a corrupt change", told(1))
}

// TestWatcher: it polls at every tick, survives errors, which it logs, and stops.
func TestWatcher(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	ticks := make(chan time.Time)
	var log bytes.Buffer
	b := New(Config{Items: awsdb.ItemsOf(db, a.table.name), Table: a.table.name, Ticks: ticks, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	toB := listen(b)
	read(t, b)
	tick := func() { // the second is taken when the first poll has ended
		ticks <- time.Time{}
		ticks <- time.Time{}
	}
	putPerDay(t, a, limiter.SystemLimitsRef(), 1)
	db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
		return dynamofake.Fault{Kind: dynamofake.Fail, Err: fmt.Errorf("broken %s", c.Op)}
	})
	tick()
	toB.want(t, b, "looks that fail")
	db.SetPlan(nil)
	tick()
	toB.want(t, b, "looks that succeed again", told(1, limiter.SystemLimitsRef()))
	for range 2 {
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	select {
	case ticks <- time.Time{}:
		t.Error("the watcher took a tick after close")
	default:
	}
	if !strings.Contains(log.String(), "broken BatchGetItem") || !strings.Contains(log.String(), a.table.name) {
		t.Errorf("logged %q", log.String())
	}
}

// A table that was made anew while it could not be read has other IDs, and the log says so.
func TestATableMadeAnew(t *testing.T) {
	for _, anew := range []bool{false, true} {
		db := dynamofake.New()
		a := newTestCatalog(t, db)
		ticks := make(chan time.Time)
		var log bytes.Buffer
		b := New(Config{Items: awsdb.ItemsOf(db, a.table.name), Table: a.table.name, Ticks: ticks, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		read(t, b)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
			return dynamofake.Fault{Kind: dynamofake.Fail, Err: errors.New("no table")}
		})
		ticks <- time.Time{}
		ticks <- time.Time{} // the first poll has ended
		db.SetPlan(nil)
		if anew {
			if err := a.table.delete(t.Context(), []schema.Key{schema.NamespaceKey(ns)}); err != nil {
				t.Fatal(err)
			}
			read(t, openTestCatalog(t, db, a.table.name))
		}
		for range 3 {
			ticks <- time.Time{}
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Count(log.String(), "the table was made anew while this process ran"); (got == 1) != anew {
			t.Errorf("anew: %t, and %d lines\n%s", anew, got, log.String())
		}
	}
}

// TestToldByDynamoDB: in real time, with the default interval, within G5.
func TestToldByDynamoDB(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	a := newTestCatalog(t, client)
	b := openCatalog(t, Config{Items: awsdb.ItemsOf(client, a.table.name), Table: a.table.name})
	got := make(chan limiter.Change, 1)
	b.Subscribe(func(ch limiter.Change) { got <- ch })
	read(t, b)
	ref := limiter.EntityLimitsRef("k\xff", "")
	putPerDay(t, a, ref, 5)
	timeout := time.NewTimer(5 * time.Second)
	defer timeout.Stop()
	select {
	case ch := <-got:
		if diff := cmp.Diff(told(1, ref), ch); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	case <-timeout.C:
		t.Error("not notified of a change within 5 s")
	}
}
