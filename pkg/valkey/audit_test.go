package valkey_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// shelf is an archive in memory.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    int
	after   func() // called after each object is there; nil = not
}

func newShelf() *shelf { return &shelf{objects: map[string][]byte{}} }

func (s *shelf) Put(_ context.Context, name string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.objects[name]; ok && len(before) > len(object) {
		return fmt.Errorf("the object %s would lose events", name)
	}
	s.objects[name] = slices.Clone(object)
	s.puts++
	if s.after != nil {
		s.after()
	}
	return nil
}

// count returns how many objects there are, and how many were written.
func (s *shelf) count() (objects, puts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects), s.puts
}

// lines returns the lines of all objects.
func (s *shelf) lines(t *testing.T) (all []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		r, err := gzip.NewReader(bytes.NewReader(s.objects[name]))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !strings.HasPrefix(name, "year=20") {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

// audited is a table with audit events, whose clock the test sets.
type audited struct {
	t      *testing.T
	server *valkeytest.Server
	cfg    valkey.Config
	store  *valkey.Store
	clock  atomic.Int64 // Unix ms
	want   []string     // lines of all events
	limit  int64
}

const auditKept = 30 * 24 * time.Hour

func newAudited(t *testing.T, server *valkeytest.Server, change func(*valkey.Config)) *audited {
	t.Helper()
	a := &audited{t: t, server: server}
	a.clock.Store(time.Now().Truncate(24 * time.Hour).UnixMilli())
	var open atomic.Bool
	a.store = onServer(t, server, func(cfg *valkey.Config) {
		cfg.Now, cfg.AuditRetention = a.now(&open), auditKept
		if change != nil {
			change(cfg)
		}
		a.cfg = *cfg
	})
	open.Store(true)
	t.Cleanup(func() { _ = a.store.Close(context.Background()) })
	return a
}

// now returns the clock of a process. It is right while the process compares it with that of the server.
func (a *audited) now(open *atomic.Bool) func() time.Time {
	return func() time.Time {
		if !open.Load() {
			return time.Now()
		}
		return time.UnixMilli(a.clock.Load())
	}
}

// pass moves the clock.
func (a *audited) pass(d time.Duration) { a.clock.Add(d.Milliseconds()) }

// change makes changes of a namespace, a millisecond after each other.
func (a *audited) change(namespace string, n int) {
	a.t.Helper()
	for range n {
		a.limit++
		a.pass(time.Millisecond)
		limits, err := limiter.NewLimits(limiter.PerDay("l", a.limit))
		if err != nil {
			a.t.Fatal(err)
		}
		if err := a.store.PutLimits(a.t.Context(), namespace, limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limits}); err != nil {
			a.t.Fatal(err)
		}
		page, err := a.store.ListEvents(a.t.Context(), namespace, limiter.AuditOf(limiter.ResourceLimitsRef("r")), limiter.Page{Size: 1})
		if err != nil || len(page.Items) != 1 {
			a.t.Fatalf("%d events, %v", len(page.Items), err)
		}
		a.want = append(a.want, page.Items[0].ID+" "+page.Items[0].Detail)
	}
}

// encode writes an event as the tests compare it.
func encode(e *aggregator.Expired) ([]byte, error) {
	return []byte(e.Event.ID + " " + e.Event.Detail), e.Problem
}

// deadLeases are leases that cannot be written once the process is dead.
type deadLeases struct {
	aggregator.Leases

	dead *atomic.Bool
}

func (l deadLeases) Write(ctx context.Context, before, after aggregator.Lease) error {
	if l.dead.Load() {
		return errors.New("the process is dead")
	}
	return l.Leases.Write(ctx, before, after)
}

// archiver is a process that archives.
type archiver struct {
	*aggregator.Poller

	dead atomic.Bool // it writes nothing any more to the table
	stop func()
}

// archive starts a process that archives to a shelf.
func (a *audited) archive(owner string, to aggregator.Archive) *archiver {
	a.t.Helper()
	var open atomic.Bool
	cfg := a.cfg
	cfg.Now = a.now(&open)
	stream, err := valkey.OpenAuditStream(a.t.Context(), cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	open.Store(true)
	p := new(archiver)
	p.Poller, err = aggregator.New(aggregator.Config{
		Source: stream, Leases: deadLeases{stream, &p.dead}, Owner: owner, Archive: to, Encode: encode, Reports: stream, ReportID: owner,
		Term: 500 * time.Millisecond, Rescan: 20 * time.Millisecond, Idle: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(a.t.Output(), nil)),
	})
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		if err := p.Run(ctx); err != nil {
			a.t.Error(err)
		}
	})
	p.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
		stream.Close()
	})
	a.t.Cleanup(p.stop)
	return p
}

// awaits waits until something is so.
func (a *audited) awaits(what string, so func() bool) {
	a.t.Helper()
	for deadline := time.After(30 * time.Second); !so(); {
		select {
		case <-deadline:
			a.t.Fatalf("waited in vain for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wantArchived waits for all events in an archive, each once.
func (a *audited) wantArchived(to *shelf) {
	a.t.Helper()
	a.awaits("the events", func() bool { return len(to.lines(a.t)) >= len(a.want) })
	if diff := cmp.Diff(a.want, to.lines(a.t), cmpopts.SortSlices(strings.Compare)); diff != "" {
		a.t.Errorf("events (-made +archived):\n%s", diff)
	}
}

// Every event of every namespace is archived once, more than a page has and in the course of days, but none of the
// newest minutes. The user of the store suffices.
func TestAuditArchive(t *testing.T) {
	a := newAudited(t, withUser(t, userRules), asUser)
	to := newShelf()
	for _, namespace := range []string{"ns", "other", "ns"} {
		a.change(namespace, 360)
	}
	a.pass(time.Hour)
	a.change("third", 1)
	a.pass(24 * time.Hour)
	p := a.archive("a", to)
	a.wantArchived(to)
	a.change("ns", 2)
	a.pass(valkey.AuditDelay)
	made := a.want
	a.want = made[:len(made)-2]
	a.awaits("a read of nothing", func() bool { return p.Stats().Records > int64(len(a.want))+2 })
	a.wantArchived(to)
	a.want = made
	a.pass(10 * time.Minute)
	a.wantArchived(to)
	p.stop()
	if s := p.Stats(); s.Archived != int64(len(a.want)) || s.Losses != 0 || s.DeadLetters != 0 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if all, err := a.store.Aggregators(t.Context()); err != nil || len(all) != 1 || !all[0].Stopped || all[0].Problem != "" {
		t.Errorf("reports %+v, %v", all, err)
	}
	if n := a.server.Must("ACL", "LOG"); n != "0" {
		t.Errorf("the server has refused %s kinds of calls of the user", n)
	}
}

// A process that ends between an object and the position of it has the next one write the same object.
func TestAuditArchiveAfterAKill(t *testing.T) {
	a := newAudited(t, valkeytest.Start(t), nil)
	to := newShelf()
	for range 3 {
		a.change("ns", 2)
		a.pass(time.Hour)
	}
	var first *archiver
	begun := make(chan struct{})
	to.after = func() {
		<-begun
		first.dead.Store(true)
	}
	first = a.archive("a", to)
	close(begun)
	a.awaits("an object", func() bool { _, puts := to.count(); return puts > 0 })
	first.stop()
	if objects, puts := to.count(); objects != 1 || puts != 1 {
		t.Fatalf("%d objects by %d writes before the end of the process", objects, puts)
	}
	to.mu.Lock()
	to.after = nil
	to.mu.Unlock()
	a.change("ns", 1) // there is more to read for the next one
	a.pass(time.Hour)
	a.archive("b", to)
	a.wantArchived(to)
	if objects, puts := to.count(); objects != 4 || puts != 5 {
		t.Errorf("%d objects by %d writes, want 4 by 5", objects, puts)
	}
}

// Two processes share the work, and one that lost it without knowing writes the same object as the other.
func TestAuditArchiveOfTwo(t *testing.T) {
	a := newAudited(t, valkeytest.Start(t), nil)
	to := newShelf()
	a.change("ns", 3)
	a.pass(time.Hour)
	hung, begun, resume := newShelf(), make(chan struct{}), make(chan struct{})
	hung.after = func() {
		close(begun)
		<-resume
	}
	first := a.archive("a", hung)
	<-begun
	first.dead.Store(true)
	second := a.archive("b", to)
	a.wantArchived(to)
	a.change("other", 3)
	a.pass(time.Hour)
	a.wantArchived(to)
	first.dead.Store(false)
	close(resume)
	a.awaits("the end of the first one's work", func() bool { return first.Stats().Shards == 0 })
	if one, all := slices.Sorted(maps.Keys(hung.objects)), slices.Sorted(maps.Keys(to.objects)); len(one) != 1 || one[0] != all[0] || !bytes.Equal(hung.objects[one[0]], to.objects[all[0]]) {
		t.Errorf("the first one wrote %q, the second one %q", one, all)
	}
	a.change("ns", 1)
	a.pass(time.Hour)
	a.wantArchived(to)
	if s := second.Stats(); s.Archived != int64(len(a.want)) || s.Losses != 0 {
		t.Errorf("%+v", s)
	}
}

// A stop of less than the retention loses nothing, and one that is longer is counted, once.
func TestAuditArchiveAfterAPause(t *testing.T) {
	a := newAudited(t, valkeytest.Start(t), nil)
	to := newShelf()
	a.change("ns", 1)
	a.pass(time.Hour)
	p := a.archive("a", to)
	a.wantArchived(to)
	p.stop()
	a.change("ns", 1)
	a.pass(auditKept)
	p = a.archive("b", to)
	a.wantArchived(to)
	if p.stop(); p.Stats().Losses != 0 {
		t.Errorf("after a pause of less than the retention: %+v", p.Stats())
	}
	a.change("ns", 1)
	lost := a.want[len(a.want)-1]
	a.pass(auditKept + 2*time.Hour)
	a.awaits("the end of the event", func() bool {
		return !strings.Contains(a.server.Must("EVAL", "return table.concat(redis.call('KEYS', '*#AUDIT#*'), ' ')", "0"), lost[:24])
	})
	a.want = a.want[:len(a.want)-1]
	a.change("ns", 1)
	a.pass(time.Hour)
	p = a.archive("c", to)
	a.wantArchived(to)
	a.awaits("the newest position", func() bool { return p.Stats().Records >= 3 })
	if p.stop(); p.Stats().Losses != 1 {
		t.Errorf("after a pause of more than the retention: %+v", p.Stats())
	}
}

// A server that comes back with an older state has events archived again, under the same names, and the
// events that it has lost stay in the archive.
func TestAuditArchiveOfAServerThatComesBackOlder(t *testing.T) {
	server := valkeytest.Start(t, "--dir", t.TempDir())
	a := newAudited(t, server, nil)
	to := newShelf()
	a.change("ns", 2)
	a.pass(time.Hour)
	server.Must("SAVE")
	a.change("ns", 2)
	a.pass(time.Hour)
	p := a.archive("a", to)
	a.wantArchived(to)
	p.stop()
	server.Kill()
	server.Restart()
	a.awaits("the server", func() bool {
		_, err := a.store.ListEvents(t.Context(), "ns", limiter.AuditFilter{}, limiter.Page{})
		return err == nil
	})
	a.change("ns", 2)
	a.pass(time.Hour)
	a.archive("b", to)
	a.wantArchived(to)
	a.awaits("three objects", func() bool { objects, puts := to.count(); return objects == 3 && puts == 4 })
}

// A clock that was ahead for a while leaves no event out: the process reads all again, under the same names.
func TestAuditArchiveOfAClockThatIsSetBack(t *testing.T) {
	a := newAudited(t, valkeytest.Start(t), nil)
	to := newShelf()
	a.change("ns", 1)
	a.pass(48 * time.Hour)
	p := a.archive("a", to)
	a.wantArchived(to)
	a.awaits("the newest position", func() bool { return p.Stats().Records >= 2 })
	a.pass(-24 * time.Hour)
	a.change("ns", 1)
	a.pass(time.Hour)
	a.wantArchived(to)
	if s := p.Stats(); s.Failures == 0 || s.Losses != 0 {
		t.Errorf("%+v", s)
	}
}
