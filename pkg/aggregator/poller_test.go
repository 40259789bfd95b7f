package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// stream is a stream in memory. An iterator is a shard and the number of records in front of it.
type stream struct {
	mu      sync.Mutex
	shards  []Shard
	records map[string][]Record
	closed  map[string]bool
	trimmed map[string]int // number of records that are gone
	read    []string       // "owner shard" of each record that was read, in order
	age     int            // reads that an iterator is good for; 0 = any number
	reads   int
	broken  bool
	gone    bool   // it is not there any more
	off     bool   // nor is another
	move    func() // to the stream that took its place; nil = none did
}

func newStream() *stream {
	return &stream{records: map[string][]Record{}, closed: map[string]bool{}, trimmed: map[string]int{}}
}

var errBroken = errors.New("the stream is broken")

func (s *stream) Shards(context.Context) ([]Shard, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil, errBroken
	}
	if s.gone {
		return nil, ErrGone
	}
	return slices.Clone(s.shards), nil
}

func (s *stream) Follow(context.Context) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return nil, ErrGone
	}
	return s.move, nil
}

func (s *stream) Open(_ context.Context, shard string, after Sequence) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return "", errBroken
	}
	if !s.has(shard) {
		return "", ErrDropped
	}
	at := s.trimmed[shard]
	if after == "x" {
		return "", ErrPosition
	}
	if after != "" {
		if at > 0 && s.records[shard][at-1].Sequence.Compare(after) > 0 {
			return "", ErrTrimmed
		}
		for at < len(s.records[shard]) && s.records[shard][at].Sequence.Compare(after) <= 0 {
			at++
		}
	}
	return fmt.Sprint(shard, " ", at, " ", s.reads), nil
}

func (s *stream) Read(_ context.Context, iterator string) ([]Record, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Fields(iterator)
	if s.broken || len(parts) != 3 {
		return nil, "", errBroken
	}
	shard := parts[0]
	at, _ := strconv.Atoi(parts[1])
	made, _ := strconv.Atoi(parts[2])
	s.reads++
	switch {
	case !s.has(shard):
		return nil, "", ErrExpired
	case at < s.trimmed[shard]:
		return nil, "", ErrTrimmed
	case s.age > 0 && s.reads-made > s.age:
		return nil, "", ErrExpired
	}
	found := s.records[shard][at:min(at+3, len(s.records[shard]))]
	for range found {
		s.read = append(s.read, shard)
	}
	at += len(found)
	if at == len(s.records[shard]) && s.closed[shard] {
		return slices.Clone(found), "", nil
	}
	return slices.Clone(found), fmt.Sprint(shard, " ", at, " ", s.reads), nil
}

// has reports whether the stream has a shard. s.mu must be locked.
func (s *stream) has(id string) bool {
	return slices.ContainsFunc(s.shards, func(sh Shard) bool { return sh.ID == id })
}

// add adds a shard, and records of one bucket to it, as a fleet makes them.
func (s *stream) add(id, parent string, f *fleet, key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(id) {
		s.shards = append(s.shards, Shard{id, parent})
	}
	for range n {
		f.write(id, key, Bucket{"ns", "e", "r"}, begin(), "rpm", 1)
	}
	s.records[id] = slices.Clone(f.shards[id])
}

// close ends shards: no record comes any more.
func (s *stream) close(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.closed[id] = true
	}
}

// drop removes a shard with its records.
func (s *stream) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards = slices.DeleteFunc(s.shards, func(sh Shard) bool { return sh.ID == id })
	delete(s.records, id)
}

// leaseTable keeps leases in memory.
type leaseTable struct {
	mu     sync.Mutex
	leases map[string]Lease
	broken bool
}

func (t *leaseTable) List(context.Context) ([]Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.leases)), nil
}

func (t *leaseTable) Write(_ context.Context, before, after Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	stored := t.leases[after.Shard]
	switch {
	case t.broken:
		return errBroken
	case before.Beat == 0 && stored.Beat > 0, stored.Fence != before.Fence, after.Fence != before.Fence && stored.Beat != before.Beat:
		return ErrConflict
	}
	t.leases[after.Shard] = after
	return nil
}

func (t *leaseTable) get(shard string) Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leases[shard]
}

// rig is a stream, its leases and its snapshots, and processes that work on it.
type rig struct {
	*stream

	t      *testing.T
	leases *leaseTable
	to     *table
	fleet  *fleet
	all    sync.WaitGroup
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, stream: newStream(), leases: &leaseTable{leases: map[string]Lease{}}, to: newTable(), fleet: newFleet()}
}

// start starts a process. stop ends it in order.
func (r *rig) start(owner string, change func(*Config)) (p *Poller, stop func()) {
	r.t.Helper()
	cfg := Config{Source: r.stream, Snapshots: r.to, Leases: r.leases, Owner: owner, Windows: []limiter.UsageWindow{limiter.UsageHour}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	r.all.Go(func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			r.t.Errorf("%s: %v", owner, err)
		}
	})
	return p, func() {
		cancel()
		<-done
	}
}

// counted requires that the snapshot has that many tokens.
func (r *rig) counted(when string, want int64) {
	r.t.Helper()
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	key := usageKey(Snapshot{Bucket{"ns", "e", "r"}, limiter.UsageHour, limiter.UsageHour.Start(begin())}, "rpm")
	if got := r.to.used[key]; got != want {
		r.t.Errorf("%s: %d, want %d", when, got, want)
	}
}

// A lease that another process takes while records wait is no failure, and the records are not written again.
func TestALeaseThatIsTakenIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 5)
		p, stop := r.start("a", func(c *Config) { c.FlushAfter = 2 * time.Second })
		time.Sleep(time.Second) // the records are read, and wait
		r.leases.mu.Lock()
		l := r.leases.leases["s"]
		l.Owner, l.Fence, l.Beat = "b", l.Fence+1, l.Beat+1
		r.leases.leases["s"] = l
		r.leases.mu.Unlock()
		time.Sleep(4 * time.Second) // the flush comes before the renewal
		if s := p.Stats(); s.Failures != 0 || s.Repeated != 0 || s.Shards != 0 {
			t.Errorf("%+v", s)
		}
		stop()
	})
}

// A shard is read when its parent is done. That holds for any order of parents and children,
// and where a parent is not in the list any more.
func TestParentsBeforeChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("c1", "p", r.fleet, "k1", 4)
		r.add("g", "c2", r.fleet, "k2", 5)
		r.add("p", "gone", r.fleet, "k1", 7)
		r.add("c2", "p", r.fleet, "k2", 6)
		p, stop := r.start("a", nil)
		time.Sleep(time.Minute)
		r.counted("only the parent", 7)
		r.close("p")
		time.Sleep(time.Minute)
		r.counted("its children", 7+4+6)
		r.add("c1", "p", r.fleet, "k1", 2)
		r.close("c1", "c2")
		time.Sleep(time.Minute)
		r.counted("the child of a child", 7+4+6+2+5)
		stop()
		lastOf := func(shard string) (last int) {
			for i, read := range r.read {
				if read == shard {
					last = i
				}
			}
			return last
		}
		if slices.Index(r.read, "g") < lastOf("c2") || min(slices.Index(r.read, "c1"), slices.Index(r.read, "c2")) < lastOf("p") {
			t.Errorf("read %v", r.read)
		}
		if s := p.Stats(); s.Losses != 0 || s.DeadLetters != 0 || s.Repeated != 0 || s.Records != 24 || s.Shards != 0 {
			t.Errorf("%+v", s)
		}
		for _, id := range []string{"p", "c1", "c2"} {
			if l := r.leases.get(id); !l.Done || l.Owner != "" {
				t.Errorf("%s: %+v", id, l)
			}
		}
	})
}

// One process works on a shard. When it ends cleanly another one goes on at once, and after a
// crash, after a term; each from the position behind the work.
func TestAnotherProcessTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 10)
		first, stopFirst := r.start("first", nil)
		time.Sleep(5 * time.Second)
		second, stopSecond := r.start("second", nil)
		time.Sleep(2 * time.Minute)
		if got := r.leases.get("s"); got.Owner != "first" || got.Fence != 1 || second.Stats().Records != 0 || first.Stats().Records != 10 {
			t.Errorf("lease %+v, second %+v", got, second.Stats())
		}
		r.add("s", "", r.fleet, "k", 5)
		time.Sleep(3 * time.Second)
		stopFirst() // with records that are read and not written
		r.counted("by the first process", 15)
		time.Sleep(DefaultRescan + time.Second)
		if got := r.leases.get("s"); got.Owner != "second" || got.Fence != 2 {
			t.Errorf("lease %+v", got)
		}
		r.add("s", "", r.fleet, "k", 3)
		time.Sleep(DefaultFlushAfter + 5*time.Second)
		r.counted("by the second", 18)
		stopSecond()
		if got := second.Stats(); got.Records != 3 || got.Repeated != 0 {
			t.Errorf("second %+v", got)
		}
	})
}

// A process whose lease another one has taken stops, and its later writes are refused.
func TestALostLeaseEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 10)
		var silent sync.Mutex
		blocked := &silentLeases{Leases: r.leases, silent: &silent}
		old, stopOld := r.start("old", func(cfg *Config) { cfg.Leases = blocked })
		time.Sleep(time.Minute)
		blocked.set(true) // it reaches the stream and the snapshots, and not the leases
		next, stopNext := r.start("next", nil)
		r.add("s", "", r.fleet, "k", 10)
		time.Sleep(3 * DefaultTerm)
		if got := r.leases.get("s"); got.Owner != "next" || got.Fence != 2 {
			t.Errorf("lease %+v", got)
		}
		blocked.set(false)
		time.Sleep(3 * DefaultTerm)
		r.counted("by both", 20)
		if old.Stats().Shards != 0 || next.Stats().Shards != 1 {
			t.Errorf("old %+v, next %+v", old.Stats(), next.Stats())
		}
		stopOld()
		stopNext()
	})
}

// silentLeases do not answer while they are silent.
type silentLeases struct {
	Leases

	silent *sync.Mutex
	on     bool
}

func (l *silentLeases) set(on bool) {
	l.silent.Lock()
	defer l.silent.Unlock()
	l.on = on
}

func (l *silentLeases) Write(ctx context.Context, before, after Lease) error {
	l.silent.Lock()
	on := l.on
	l.silent.Unlock()
	if on {
		return errBroken
	}
	return l.Leases.Write(ctx, before, after)
}

// Records that the stream drops before they are read are a loss, which is reported once; the rest
// counts.
func TestTrimmedRecordsAreALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 6)
		r.add("x", "", r.fleet, "k2", 2)
		p, stop := r.start("a", nil)
		time.Sleep(time.Minute)
		stop()
		r.add("s", "", r.fleet, "k", 9)
		r.mu.Lock()
		r.trimmed["s"] = 10 // 4 of the 9 are gone
		r.mu.Unlock()
		r.drop("x") // its records after the 2 are unknown
		r.counted("before", 8)
		q, stop := r.start("b", nil)
		time.Sleep(2 * time.Minute)
		stop()
		r.counted("after", 8+5)
		if p.Stats().Losses != 0 || q.Stats().Losses != 2 {
			t.Errorf("%+v, %+v; want 2 losses", p.Stats(), q.Stats())
		}
		if l := r.leases.get("x"); !l.Done {
			t.Errorf("%+v", l)
		}
	})
}

// Iterators that expire and calls that fail lose nothing and count nothing twice.
func TestExpiredIteratorsAndOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.age = 2
		r.add("s", "", r.fleet, "k", 50)
		p, stop := r.start("a", func(cfg *Config) { cfg.FlushRecords = 7 })
		time.Sleep(time.Minute)
		r.counted("with iterators of two reads", 50)
		r.mu.Lock()
		r.broken = true
		r.mu.Unlock()
		time.Sleep(10 * time.Minute)
		r.mu.Lock()
		r.broken = false
		r.mu.Unlock()
		r.add("s", "", r.fleet, "k", 20)
		time.Sleep(time.Minute)
		stop()
		r.counted("after an outage", 70)
		if s := p.Stats(); s.Losses != 0 || s.Failures == 0 || s.Repeated != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A record that cannot be read is logged with its key, and with nothing else of its
// item.
func TestDeadLettersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("s", "", r.fleet, "k", 3)
		r.records["s"][1].Problem, r.records["s"][1].Key = errors.New("no number"), `PK="ns/BUCKET#e#r#0"`
		var log strings.Builder
		p, stop := r.start("a", func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		time.Sleep(time.Minute)
		stop()
		r.counted("but the poison", 2)
		if s := p.Stats(); s.DeadLetters != 1 || s.Records != 3 {
			t.Errorf("%+v", s)
		}
		for _, want := range []string{`key="PK=\"ns/BUCKET#e#r#0\""`, "shard=s", "no number"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in %s", want, log.String())
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{Owner: "a"}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestShardsThatAreReady(t *testing.T) {
	shards := []Shard{{"a", ""}, {"b", "a"}, {"c", "none"}, {"d", "c"}}
	leases := map[string]Lease{"a": {Shard: "a", Done: true}, "c": {Shard: "c"}, "old": {Shard: "old", Done: true}, "lost": {Shard: "lost"}}
	if diff := cmp.Diff([]Shard{{"b", "a"}, {"c", "none"}}, ready(shards, leases)); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Lease{{Shard: "lost"}}, lost(shards, leases)); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}
