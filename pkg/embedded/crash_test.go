package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// world is one data directory, and the runs of its store, each in a new process. The test is the
// writer of the disk and all callers. It decides each step of a commit under way, and repeats them
// with the same seed.
//
// Beside the store there is a reference store in memory, which never crashes. It must be able to
// give every token that the store gave. The conformance suite shows that it does not over-admit. So
// the runs of the store together did not either: in no window more than B + r·t.
type world struct {
	t    *testing.T
	fail func(string) // does not return
	ways ways
	r    *rand.Rand
	dir  string
	real int64 // Unix ms, by a clock that is never set
	skew int64 // offset of the run's clock

	latest int64 // latest time by the clock of any run
	behind bool  // the run's clock began before latest

	store     *Store
	pending   *pendingBatch // nil = the writer has nothing under way
	dead      bool          // the file accepts no more writes in this run
	reference *Store        // never crashes

	tenants []*tenant
	callers []*caller
	refunds []refund
	used    map[string]int64 // consumption by entity and limit, in millitokens
	counts  map[string]int
}

// ways are the rules of a world, as functions. TestMissingRulesAreFound replaces one.
type ways struct {
	recover func(r *restored, now int64) // in place of load's recovery; nil = load's
	take    func(s *Store, now int64, ops []limiter.Op) (try, error)
	sweep   func(s *Store, now int64)
	ended   func(err error) error // the error that a store gets for a commit
}

func asTheyAre() ways {
	return ways{
		take: func(s *Store, now int64, ops []limiter.Op) (try, error) {
			if len(ops) == 1 {
				return s.tryOne(now, &ops[0])
			}
			return s.tryAll(now, ops)
		},
		sweep: func(s *Store, now int64) { s.sweep(0, shardCount, now) },
		ended: func(err error) error { return err },
	}
}

// pendingBatch is a batch under way.
type pendingBatch struct {
	batch   *batch
	writing writing
	saved   bool
	err     error
}

// start is far from 0, so that clocks can be set back again and again.
const start = int64(1_700_000_000_000)

func newWorld(t *testing.T, seed uint64, ways ways) *world {
	t.Helper()
	w := &world{
		t: t, fail: func(text string) { t.Helper(); t.Fatal(text) }, ways: ways, r: rand.New(rand.NewPCG(seed, 0)), dir: memory(t), real: start,
		reference: newStore(t, Config{SweepInterval: time.Hour}), used: make(map[string]int64), counts: make(map[string]int),
	}
	for i := range 4 {
		w.tenants = append(w.tenants, newTenant(t, w.r, i))
	}
	for range 5 {
		w.callers = append(w.callers, &caller{})
	}
	w.store = w.begin(w.dir)
	t.Cleanup(func() { w.kill(w.store) })
	return w
}

func (w *world) clock() int64 { return w.real + w.skew }

// begin opens a store in a directory, without the goroutines that Open starts.
func (w *world) begin(dir string) *Store {
	w.t.Helper()
	file, err := datafile.Open(dir, datafile.Options{})
	if err != nil {
		w.fatalf("opening the store: %v", err)
	}
	s := assemble(Config{Now: func() time.Time { return time.UnixMilli(w.clock()) }}.withDefaults(), file)
	s.stop = func() {}
	close(s.done)
	if err := s.load(); err != nil {
		w.fatalf("opening the store: %v", err)
	}
	w.applyRecovery(s)
	return s
}

// kill ends a run as SIGKILL does: only the file survives.
func (w *world) kill(s *Store) {
	w.t.Helper()
	if err := s.disk.file.Close(); err != nil && !errors.Is(err, datafile.ErrClosed) {
		w.fatalf("closing the file: %v", err)
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.fail(fmt.Sprintf("after %v: %s", w.counts, fmt.Sprintf(format, args...)))
}

// step draws one event.
func (w *world) step() {
	switch n := w.r.IntN(1000); {
	case n < 550:
		w.call(w.callers[w.r.IntN(len(w.callers))])
	case n < 800:
		w.write()
	case n < 930:
		w.real += w.r.Int64N(60)
	case n < 960:
		w.real += w.r.Int64N(5_000)
	case n < 963:
		w.real += w.r.Int64N(2 * hourMs)
		w.ways.sweep(w.store, w.clock()) // before the other callers return
	case n < 975:
		w.ways.sweep(w.store, w.clock())
	case n < 980:
		w.tenants[w.r.IntN(len(w.tenants))].change(w.r)
	case n < 996:
		w.crash()
	default:
		w.stop()
	}
}

// write moves the writer on by one step.
func (w *world) write() {
	d := w.store.disk
	if w.pending == nil {
		d.mu.Lock()
		n := d.next
		d.next = nil
		d.mu.Unlock()
		if n != nil {
			w.pending = &pendingBatch{batch: n, writing: d.collect(n)}
		}
		return
	}
	if !w.pending.saved {
		w.save()
		return
	}
	w.conclude()
}

// save writes the batch under way, unless the disk is full or the commit has an unknown outcome. In
// that case the file has the batch or not, and accepts no writes until it is opened again.
func (w *world) save() {
	w.pending.saved = true
	switch n := w.r.IntN(100); {
	case w.dead:
		w.pending.err = datafile.ErrUncertain
	case n < 3:
		w.pending.err = datafile.ErrFull
		w.counts["disk full"]++
	case n < 5:
		w.dead, w.pending.err = true, datafile.ErrUncertain
		w.counts["uncertain"]++
		if n == 3 {
			w.mustSave()
		}
	case n < 8:
		w.checkCuts()
	default:
		w.mustSave()
	}
}

func (w *world) mustSave() {
	w.t.Helper()
	if err := w.pending.writing.save(w.store.disk.file); err != nil {
		w.fatalf("writing a batch: %v", err)
	}
	w.counts["commits"]++
}

func (w *world) conclude() {
	d, n := w.store.disk, w.pending.batch
	d.conclude(n, w.ways.ended(w.pending.err))
	close(n.done)
	w.pending = nil
}

// crash ends the run at once, and starts another with a clock that may have been set back.
func (w *world) crash() {
	w.counts["crashes"]++
	if w.pending != nil {
		w.counts["crashes with a batch under way"]++
	}
	was := w.clock()
	if w.pending != nil && !w.pending.saved && !w.dead && w.r.IntN(2) == 0 {
		w.cutPower()
	} else {
		w.kill(w.store)
	}
	w.restart(func(old, now *Store, steady bool) {
		w.checkCrash(old, now, was, steady)
		w.checkUsage(now, true)
		w.accept(old, now)
	})
}

// stop ends the run with a clean shutdown: nothing is lost.
func (w *world) stop() {
	if w.dead {
		w.crash() // the file accepts no writes
		return
	}
	w.counts["stops"]++
	if w.pending != nil {
		if !w.pending.saved {
			w.mustSave()
		}
		w.conclude()
	}
	kept := w.store.copies() // Close drops them
	was := w.clock()
	go w.store.disk.run()
	if err := w.store.Close(w.t.Context()); err != nil {
		w.fatalf("closing: %v", err)
	}
	w.restart(func(_, now *Store, steady bool) {
		w.checkStop(kept, now, was, steady)
		w.checkUsage(now, false)
	})
}

// restart starts the next run, and has it checked against the one before. If the clock was set back
// before or by this restart, refill that was not written is lost with the earlier run. steady
// reports that the clock was not set back.
func (w *world) restart(check func(old, now *Store, steady bool)) {
	w.t.Helper()
	w.latest = max(w.latest, w.clock())
	switch w.r.IntN(20) {
	case 0:
		w.skew -= w.r.Int64N(3 * hourMs) // the clock is set back
	case 1, 2:
		w.real += w.r.Int64N(5 * hourMs)
	case 3, 4, 5, 6, 7, 8, 9:
		w.real += w.r.Int64N(100)
	}
	steady := !w.behind
	w.behind = w.clock() < w.latest
	old := w.store
	w.store, w.pending, w.dead = w.begin(w.dir), nil, false
	w.refill()
	check(old, w.store, steady && !w.behind)
	w.refunds = nil
	for _, tn := range w.tenants {
		tn.see(bucketOf(w.store, &tn.key))
		tn.changed, tn.given = false, false
	}
	for _, c := range w.callers {
		*c = caller{}
	}
}

// refill refills the reference store to the current time, as the new run refilled its buckets.
func (w *world) refill() {
	for i := range w.reference.shards {
		for _, b := range w.reference.shards[i].buckets {
			for ; b != nil; b = b.next {
				for j := range b.limits.Len() {
					if !b.limits.Unlimited(j) {
						*b.balance(j) = b.balance(j).Refill(b.limits.Params(j), w.real)
					}
				}
				for j := range b.sleeping() {
					d := &b.rest.dormant[j]
					d.bucket = d.bucket.Refill(d.limit.Params(), w.real)
				}
			}
		}
	}
}

// To repeat a failed run with its seed: go test ./pkg/embedded -run 'TestCrashes/seed_17$'
func TestCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(crashSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, asTheyAre())
			w.run()
			t.Logf("%v", w.counts)
			for _, what := range []string{"admitted", "denied", "waited", "crashes", "crashes with a batch under way", "stops", "disk full", "waited after the decision", "power cuts", "checks after a power cut"} {
				if w.counts[what] == 0 {
					t.Errorf("none was %s: the run shows little", what)
				}
			}
		})
	}
}

// run draws enough events for every kind to occur.
func (w *world) run() {
	w.t.Helper()
	for range 4000 {
		w.step()
	}
}

// bucketOf returns the bucket of a store in memory, nil for none.
func bucketOf(s *Store, k *limiter.BucketKey) *bucket {
	hash := s.hash(k)
	for b := s.shards[hash%shardCount].buckets[hash]; b != nil; b = b.next {
		if b.is(k) {
			return b
		}
	}
	return nil
}

// copies returns copies of all buckets, by identity.
func (s *Store) copies() map[string]*bucket {
	all := make(map[string]*bucket)
	for i := range s.shards {
		for _, b := range s.shards[i].buckets {
			for ; b != nil; b = b.next {
				all[string(b.identity())] = b.copy()
			}
		}
	}
	return all
}

func (b *bucket) copy() *bucket {
	c := *b
	c.next = nil
	if b.rest != nil {
		c.rest = &rest{balances: append(c.rest.balances[:0:0], b.rest.balances...), dormant: append(c.rest.dormant[:0:0], b.rest.dormant...)}
	}
	return &c
}
