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

// world is one data directory over many lives of its store. The test is the disk's
// writer and all of the callers: what happens while a batch is on its way happens
// because the test does it then, and again with the same seed.
//
// Beside the store lives another, in memory, that never dies and is asked for all that
// the first one gave. It does not over-admit (the conformance suite shows that), so as
// long as it would have given all the same, neither did the lives of the first one
// together: in no window more than B + r·t.
type world struct {
	t    *testing.T
	fail func(string) // does not return
	ways ways
	r    *rand.Rand
	dir  string
	real int64 // Unix ms, what a clock says that is never set
	skew int64 // what the life's clock says more

	latest int64 // that any life's clock said
	behind bool  // the life's clock began before that

	life  *Store
	air   *flight // nil = the writer has nothing under way
	dead  bool    // the file takes no more writes in this life
	whole *Store  // the store that never dies

	tenants []*tenant
	callers []*caller
	gifts   []gift
	used    map[string]int64 // consumption by entity and limit, in millitokens
	counts  map[string]int
}

// ways are how a world does what a rule is about: TestMissingRulesAreFound takes one away.
type ways struct {
	recover func(r *restored, now int64) // instead of what load did; nil = as load did
	take    func(s *Store, now int64, ops []limiter.Op) (try, error)
	sweep   func(s *Store, now int64)
	ended   func(err error) error // what a store is told of its commit
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

// flight is a batch under way.
type flight struct {
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
		whole: newStore(t, Config{SweepInterval: time.Hour}), used: make(map[string]int64), counts: make(map[string]int),
	}
	for i := range 4 {
		w.tenants = append(w.tenants, newTenant(t, w.r, i))
	}
	for range 5 {
		w.callers = append(w.callers, &caller{})
	}
	w.life = w.begin(w.dir)
	t.Cleanup(func() { w.kill(w.life) })
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
	w.reconsider(s)
	return s
}

// kill ends a life as SIGKILL does: what is in the file stays.
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

// step lets something happen.
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
		w.ways.sweep(w.life, w.clock()) // while somebody may come back
	case n < 975:
		w.ways.sweep(w.life, w.clock())
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
	d := w.life.disk
	if w.air == nil {
		d.mu.Lock()
		n := d.next
		d.next = nil
		d.mu.Unlock()
		if n != nil {
			w.air = &flight{batch: n, writing: d.collect(n)}
		}
		return
	}
	if !w.air.saved {
		w.save()
		return
	}
	w.conclude()
}

// save writes the batch under way, unless the disk is full, or fails in a way that
// leaves open what is in the file: then it may be there or not, and nothing more is
// written until the file is opened again.
func (w *world) save() {
	w.air.saved = true
	switch n := w.r.IntN(100); {
	case w.dead:
		w.air.err = datafile.ErrUncertain
	case n < 3:
		w.air.err = datafile.ErrFull
		w.counts["disk full"]++
	case n < 5:
		w.dead, w.air.err = true, datafile.ErrUncertain
		w.counts["uncertain"]++
		if n == 3 {
			w.mustSave()
		}
	case n < 8:
		w.lookAfterCuts()
	default:
		w.mustSave()
	}
}

func (w *world) mustSave() {
	w.t.Helper()
	if err := w.air.writing.save(w.life.disk.file); err != nil {
		w.fatalf("writing a batch: %v", err)
	}
	w.counts["commits"]++
}

func (w *world) conclude() {
	d, n := w.life.disk, w.air.batch
	d.conclude(n, w.ways.ended(w.air.err))
	close(n.done)
	w.air = nil
}

// crash ends the life here and now, and begins another by a clock that may have been
// set back.
func (w *world) crash() {
	w.counts["crashes"]++
	if w.air != nil {
		w.counts["crashes with a batch under way"]++
	}
	was := w.clock()
	if w.air != nil && !w.air.saved && !w.dead && w.r.IntN(2) == 0 {
		w.cutPower()
	} else {
		w.kill(w.life)
	}
	w.rise(func(old, now *Store, steady bool) {
		w.checkCrash(old, now, was, steady)
		w.checkUsage(now, true)
		w.accept(old, now)
	})
}

// stop ends the life in order: nothing is lost.
func (w *world) stop() {
	if w.dead {
		w.crash() // there is nothing to be written to
		return
	}
	w.counts["stops"]++
	if w.air != nil {
		if !w.air.saved {
			w.mustSave()
		}
		w.conclude()
	}
	kept := w.life.copies() // Close forgets them
	was := w.clock()
	go w.life.disk.run()
	if err := w.life.Close(w.t.Context()); err != nil {
		w.fatalf("closing: %v", err)
	}
	w.rise(func(_, now *Store, steady bool) {
		w.checkStop(kept, now, was, steady)
		w.checkUsage(now, false)
	})
}

// rise begins the next life, and has it checked against the one before. Where a clock
// was set back, by it or by the next, what a bucket was refilled in the meantime is lost
// with a life that did not write it: steady says that there was no such clock.
func (w *world) rise(check func(old, now *Store, steady bool)) {
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
	old := w.life
	w.life, w.air, w.dead = w.begin(w.dir), nil, false
	w.refill()
	check(old, w.life, steady && !w.behind)
	w.gifts = nil
	for _, tn := range w.tenants {
		tn.see(bucketOf(w.life, &tn.key))
		tn.changed, tn.given = false, false
	}
	for _, c := range w.callers {
		*c = caller{}
	}
}

// refill brings the store that never dies to the time at hand, as the life that begins
// did with its own buckets.
func (w *world) refill() {
	for i := range w.whole.shards {
		for _, b := range w.whole.shards[i].buckets {
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

// A run that fails says its seed: go test ./pkg/embedded -run 'TestCrashes/seed_17$'
func TestCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(crashSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, asTheyAre())
			w.run()
			t.Logf("%v", w.counts)
			for _, what := range []string{"admitted", "denied", "waited", "crashes", "crashes with a batch under way", "stops", "disk full", "waited with what it gave", "power cuts", "looks after a power cut"} {
				if w.counts[what] == 0 {
					t.Errorf("none was %s: the run shows little", what)
				}
			}
		})
	}
}

// run lets enough happen for every kind of event.
func (w *world) run() {
	w.t.Helper()
	for range 4000 {
		w.step()
	}
}

// bucketOf returns what a store has in memory of a bucket, nil for none.
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
