package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// ledger is a table with usage, and the watches of some processes.
type ledger struct {
	*testing.T

	db  *dynamofake.DB
	ns  string // id of the namespace
	set *limiter.BudgetSet
	log bytes.Buffer

	mu   sync.Mutex
	told []string

	running sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // of the watches
}

// newLedger makes a table with a budget of 10 tokens of the limit l for each day.
func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{T: t, db: dynamofake.New()}
	if err := dynamo.CreateTable(t.Context(), l.db, "buckets"); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.ns, err = dynamo.NamespaceID(t.Context(), l.db, "buckets", "ns", time.Now()); err != nil {
		t.Fatal(err)
	}
	daily, err := limiter.NewBudgets(limiter.Budget{Limit: "l", Window: limiter.UsageDay, Tokens: 10})
	if err != nil {
		t.Fatal(err)
	}
	l.set = limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{limiter.SystemLimitsRef(): daily})
	l.ctx, l.stop = context.WithCancel(t.Context())
	return l
}

// watch starts the watch of a process.
func (l *ledger) watch() *catalog.BudgetWatch {
	l.Helper()
	w, err := catalog.NewBudgetWatch(catalog.BudgetWatchConfig{Items: awsdb.ItemsOf(l.db, "buckets"), Table: "buckets", Now: time.Now, Logger: slog.New(slog.NewTextHandler(&l.log, nil))})
	if err != nil {
		l.Fatal(err)
	}
	l.running.Go(func() {
		w.Run(l.ctx, 0, func() *limiter.BudgetSet { return l.set }, func(e limiter.BudgetEvent) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told = append(l.told, fmt.Sprintf("%s %s %d%%", e.Namespace, e.Entity, e.Percent))
		})
	})
	synctest.Wait()
	return w
}

// end ends the watches.
func (l *ledger) end() {
	l.stop()
	l.running.Wait()
}

// use adds 8 tokens to the snapshots of an entity, as the write of a take does, and returns the key of the
// hour's.
func (l *ledger) use(entity string) schema.Key {
	l.Helper()
	k := schema.BucketKey(l.ns, limiter.BucketKey{Entity: entity, Resource: "r"}, 0)
	snapshots, ok := schema.SnapshotsOf(k, time.Now().UTC())
	if !ok {
		l.Fatalf("%s has no usage", k)
	}
	for _, w := range limiter.UsageWindows() {
		e := schema.NewUpdate(snapshots.Key(w))
		for name, v := range snapshots.Item(w, time.Hour) {
			e.Set(name, v)
		}
		e.Add(schema.AttrEvents, 1)
		e.Add(schema.UsedAttr("l"), 8*limiter.Milli)
		if _, err := awsdb.ItemsOf(l.db, "buckets").Write(l.Context(), e); err != nil {
			l.Fatal(err)
		}
	}
	return snapshots.Key(limiter.UsageHour)
}

// wants requires the events so far.
func (l *ledger) wants(when string, want ...string) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.told); diff != "" {
		l.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// During an outage no usage is forgotten. The log has one line about it.
func TestAnOutageDelaysEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		w := l.watch()
		key := l.use("e")
		l.db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
		w.Changed(key)
		time.Sleep(50 * time.Second)
		l.wants("in the outage")
		l.db.SetPlan(nil)
		time.Sleep(2 * catalog.DefaultBudgetPause)
		l.wants("afterwards", "ns e 80%")
		l.end()
		if n := strings.Count(l.log.String(), "usage cannot be compared"); n != 1 {
			t.Errorf("%d lines of the outage:\n%s", n, l.log.String())
		}
	})
}

// Usage that no process has noted, as those of a process that was killed, is told by the next round. So is the usage
// of a window that has ended since.
func TestARoundFindsUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - time.Minute) // the time of a simulation begins at midnight
		l := newLedger(t)
		l.watch()
		l.use("e")
		time.Sleep(12 * time.Minute) // the next day
		l.wants("after a round", "ns e 80%")
		l.use("f")
		l.watch()
		l.wants("at the start of another process", "ns e 80%", "ns f 80%")
		l.end()
	})
}

// The snapshots that wait are bounded. A round finds those that had no room.
func TestUsageWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		w := l.watch()
		of := limiter.UsageHour.Start(time.Now())
		for i := range 50_000 {
			w.Changed((&schema.UsageOf{Entity: "x" + strconv.Itoa(i), Resource: "r", Window: limiter.UsageHour, Start: of}).Key(l.ns))
		}
		w.Changed(l.use("e"))
		time.Sleep(2 * catalog.DefaultBudgetPause)
		l.wants("before the round")
		time.Sleep(time.Minute)
		l.wants("after the round", "ns e 80%")
		l.end()
	})
}

// However many processes there are: one of them makes a round in ten minutes.
func TestRoundsOfAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		for range 10 {
			l.watch()
		}
		before := l.db.Count("Query")
		time.Sleep(time.Hour + time.Minute)
		l.end()
		const each = 1 + schema.IndexPartitions // the names of namespaces, and the queries of one
		rounds := float64(l.db.Count("Query")-before) / each
		if rounds < 5 || rounds > 7 {
			t.Errorf("%.1f rounds in an hour, want about 6", rounds)
		}
	})
}

// An event that a round has noted, by a write whose reply was lost, is told by the process that noted it. No other
// round tells it: the snapshot has the note.
func TestANoteOfARoundWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		lost := false
		l.use("e")
		l.db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			if !ok || lost || !strings.Contains(fmt.Sprint(in.ExpressionAttributeNames), "t_l#") {
				return dynamofake.Fault{}
			}
			lost = true
			return dynamofake.Fault{Kind: dynamofake.LoseReply}
		})
		l.watch()
		time.Sleep(55 * time.Second)
		l.watch() // it makes a round as it starts, so that the first process makes none
		time.Sleep(2 * time.Minute)
		if !lost {
			t.Error("no reply was lost")
		}
		l.wants("after the rounds", "ns e 80%")
		l.end()
	})
}

// A process that ends while a round notes an event tells it at its end.
func TestARoundThatEndsWithItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		l.use("e")
		l.db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			if !ok || !strings.Contains(fmt.Sprint(in.ExpressionAttributeNames), "t_l#") {
				return dynamofake.Fault{}
			}
			return dynamofake.Fault{Kind: dynamofake.HoldReply}
		})
		w := l.watch()
		l.end()
		l.db.SetPlan(nil)
		w.Finish(t.Context())
		l.wants("at the end", "ns e 80%")
	})
}
