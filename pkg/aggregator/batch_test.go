package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// table keeps snapshots in memory. It fails as a caller says, before or after it has applied.
type table struct {
	mu        sync.Mutex
	used      map[string]int64 // millitokens by snapshot and limit
	events    map[Snapshot]int64
	positions map[Snapshot]map[string]Sequence
	writes    int
	fault     func(c *Change) (applied bool, err error) // nil = none
}

func newTable() *table {
	return &table{used: map[string]int64{}, events: map[Snapshot]int64{}, positions: map[Snapshot]map[string]Sequence{}}
}

func (t *table) Add(_ context.Context, c *Change) (Sequence, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	applied, err := true, error(nil)
	if t.fault != nil {
		applied, err = t.fault(c)
	}
	if !applied {
		return "", err
	}
	if has, found := t.positions[c.Snapshot][c.Shard]; found && has.Compare(c.First) >= 0 {
		return has, err
	}
	if t.positions[c.Snapshot] == nil {
		t.positions[c.Snapshot] = map[string]Sequence{}
	}
	t.positions[c.Snapshot][c.Shard] = c.Last
	for limit, n := range c.Used {
		t.used[usageKey(c.Snapshot, limit)] += n
	}
	t.events[c.Snapshot] += c.Events
	t.writes++
	return "", err
}

func usageKey(s Snapshot, limit string) string {
	return fmt.Sprintf("%v %v %v %s", s.Bucket, s.Window, s.Start, limit)
}

// fleet makes a history of the items of buckets, and sums up its consumption.
type fleet struct {
	items   map[string]*Image // by key
	want    map[string]int64
	shards  map[string][]Record // of the stream
	written int
}

func newFleet() *fleet {
	return &fleet{items: map[string]*Image{}, want: map[string]int64{}, shards: map[string][]Record{}}
}

// write consumes n of a limit by an item of a bucket. The item may be new.
func (f *fleet) write(shard, key string, of Bucket, at time.Time, limit string, n int64) {
	old := f.items[key]
	now := &Image{Consumed: map[string]int64{}, Taken: at.UnixMilli()}
	if old != nil {
		maps.Copy(now.Consumed, old.Consumed)
	}
	now.Consumed[limit] += n
	f.put(shard, key, of, old, now)
	for _, w := range limiter.UsageWindows() {
		f.want[usageKey(Snapshot{of, w, w.Start(at)}, limit)] += n
	}
}

// put writes an item, or removes it.
func (f *fleet) put(shard, key string, of Bucket, old, now *Image) {
	f.written++
	sequence := strconv.Itoa(1_000_000 * f.written) // numbers grow longer
	f.shards[shard] = append(f.shards[shard], Record{Sequence: Sequence(sequence), Key: key, Time: begin(), Bucket: of, Old: old, New: now})
	f.items[key] = now
	if now == nil {
		delete(f.items, key)
	}
}

// begin is in the last minute of a month.
func begin() time.Time { return time.Date(2026, 10, 31, 23, 59, 30, 0, time.UTC) }

// history draws writes of three buckets by items that come, split off, forget limits, and go.
func history(t *rapid.T) *fleet {
	f := newFleet()
	for i := range rapid.IntRange(1, 60).Draw(t, "writes") {
		entity := rapid.IntRange(0, 2).Draw(t, "entity")
		of := Bucket{"ns", fmt.Sprint("e", entity), "r"}
		part := rapid.IntRange(0, 2).Draw(t, "shard of the bucket")
		key := fmt.Sprint(entity, "#", part)
		shard := fmt.Sprint("s", (entity+part)%3) // of the stream
		at := begin().Add(time.Duration(i) * time.Second * 3)
		limit := rapid.SampledFrom([]string{"rpm", "tpm"}).Draw(t, "limit")
		switch old := f.items[key]; rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0: // it expires, or another shard has absorbed it
			if old != nil {
				f.put(shard, key, of, old, nil)
			}
		case 1: // it forgets a limit
			if old != nil {
				now := &Image{Consumed: maps.Clone(old.Consumed), Exact: at.UnixMilli()}
				delete(now.Consumed, limit)
				f.put(shard, key, of, old, now)
			}
		case 2: // it is split off, without consumption
			if old == nil {
				f.put(shard, key, of, nil, &Image{Consumed: map[string]int64{}})
			}
		default:
			f.write(shard, key, of, at, limit, rapid.Int64Range(-1000, 5000).Draw(t, "n"))
		}
	}
	return f
}

// wantSame compares usage without regard to zeros.
func wantSame(t rapid.TB, want, got map[string]int64) {
	t.Helper()
	zero := func(_ string, n int64) bool { return n == 0 }
	maps.DeleteFunc(want, zero)
	maps.DeleteFunc(got, zero)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("usage (-want +got):\n%s", diff)
	}
}

// Each record counts once, in any batches, with any repetitions and any failures of
// writes.
func TestEachRecordCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := history(t)
		to := newTable()
		seed := rapid.Uint64().Draw(t, "seed")
		faults := rand.New(rand.NewPCG(seed, 1))
		to.fault = func(*Change) (bool, error) {
			switch faults.IntN(6) {
			case 0:
				return false, errors.New("not applied")
			case 1:
				return true, errors.New("applied, and the answer is lost")
			}
			return true, nil
		}
		for shard, records := range f.shards {
			for from := 0; from < len(records); { // from = the checkpoint
				end := from + 1 + faults.IntN(len(records)-from)
				b := NewBatch(shard, limiter.UsageWindows(), nil)
				for i := from; i < end; i++ {
					b.Add(&records[i])
				}
				done, err := b.Flush(context.Background(), to)
				if (err == nil) != (done.Failed == "") || (err == nil) != b.Empty() {
					t.Fatalf("%+v, %v, empty %t", done, err, b.Empty())
				}
				switch {
				case err == nil && faults.IntN(3) > 0: // else it is killed before it saves the position
					from = end
				case err != nil: // the records in front of the first that failed are done
					for from < end && records[from].Sequence.Compare(done.Failed) < 0 {
						from++
					}
				}
			}
		}
		wantSame(t, f.want, to.used)
		for s, n := range to.events {
			if n <= 0 || n > int64(f.written) {
				t.Fatalf("%v: %d events of %d", s, n, f.written)
			}
		}
	})
}

// A batch makes one write for each snapshot.
func TestOneWriteForEachSnapshot(t *testing.T) {
	f := newFleet()
	for i := range 300 {
		f.write("s", "k", Bucket{"ns", "e", "r"}, begin().Add(time.Duration(i)*time.Millisecond), "rpm", 1)
	}
	to, b := newTable(), NewBatch("s", limiter.UsageWindows(), nil)
	for i := range f.shards["s"] {
		b.Add(&f.shards["s"][i])
	}
	done, err := b.Flush(t.Context(), to)
	if err != nil || done.Written != 3 || to.writes != 3 {
		t.Errorf("%+v and %d writes, %v; want 3", done, to.writes, err)
	}
	wantSame(t, f.want, to.used)
}

// A record that cannot be read, or whose snapshot cannot be written, is reported by its key, and the others
// count.
func TestPoisonIsTold(t *testing.T) {
	f := newFleet()
	for i := range 6 {
		f.write("s", fmt.Sprint("k", i), Bucket{"ns", fmt.Sprint("e", i%2), "r"}, begin(), "rpm", 1)
	}
	records := f.shards["s"]
	records[2].Problem = errors.New("unreadable")
	records[4].Other = true
	to := newTable()
	to.fault = func(c *Change) (bool, error) {
		if c.Snapshot.Bucket.Entity == "e1" {
			return false, fmt.Errorf("%w: too large", limiter.ErrInvalid)
		}
		return true, nil
	}
	b := NewBatch("s", []limiter.UsageWindow{limiter.UsageHour}, nil)
	for i := range records {
		b.Add(&records[i])
	}
	if done, err := b.Flush(t.Context(), to); err != nil || done.Written != 1 || !b.Empty() {
		t.Errorf("%+v, %v, empty %t", done, err, b.Empty())
	}
	told := map[string]bool{}
	for _, l := range b.Letters() {
		told[l.Key] = l.Problem != nil && l.Sequence != ""
	}
	if diff := cmp.Diff(map[string]bool{"k1": true, "k2": true, "k3": true, "k5": true}, told); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	if len(b.Letters()) != 0 {
		t.Error("letters are reported twice")
	}
	wantSame(t, map[string]int64{usageKey(Snapshot{Bucket{"ns", "e0", "r"}, limiter.UsageHour, limiter.UsageHour.Start(begin())}, "rpm"): 1}, to.used)
}

// Consumption is booked to the time of its decision, not to that of the last refill or of the write.
func TestBookedToTheDecision(t *testing.T) {
	write := begin().Add(time.Hour)
	ms := begin().UnixMilli()
	for name, tt := range map[string]struct {
		old, now *Image
		want     time.Time
		misdated bool
	}{
		"a take":                      {&Image{Taken: ms - 1}, &Image{Taken: ms}, begin(), false},
		"a new item":                  {nil, &Image{Taken: ms}, begin(), false},
		"an exact write":              {&Image{Taken: 5, Exact: 7}, &Image{Taken: 5, Exact: ms}, begin(), false},
		"a take by an older clock":    {&Image{Taken: ms + 500}, &Image{Taken: ms}, begin(), false},
		"a refund, which has no time": {&Image{Taken: ms}, &Image{Taken: ms}, write, false},
		"a time out of all years":     {&Image{}, &Image{Taken: -1 << 62}, write, true},
		"a clock that is fast":        {&Image{}, &Image{Taken: write.Add(mostAhead).UnixMilli()}, write.Add(mostAhead), false},
		"a clock that is too fast":    {&Image{}, &Image{Taken: write.Add(mostAhead).UnixMilli() + 1}, write, true},
		"a charge kept in an outage":  {&Image{}, &Image{Taken: write.Add(-mostBehind).UnixMilli()}, write.Add(-mostBehind), false},
		"a clock that is too slow":    {&Image{}, &Image{Taken: write.Add(-mostBehind).UnixMilli() - 1}, write, true},
	} {
		r := Record{Time: write, Old: tt.old, New: tt.now}
		if got, misdated, ok := r.at(); !got.Equal(tt.want) || misdated != tt.misdated || !ok {
			t.Errorf("%s: %v, %t, %t; want %v", name, got, misdated, ok, tt.want)
		}
		r.Time = time.Time{} // nothing to compare with
		if got, _, ok := r.at(); ok && tt.now.Taken > 0 && !got.Equal(time.UnixMilli(max(tt.now.Taken, tt.now.Exact))) {
			t.Errorf("%s, without the time of the write: %v", name, got)
		}
	}
	b := NewBatch("s", limiter.UsageWindows(), nil)
	b.Add(&Record{Time: write, New: &Image{Consumed: map[string]int64{"rpm": 1}, Taken: write.AddDate(1, 0, 0).UnixMilli()}})
	if n := b.Misdated(); n != 1 || b.Misdated() != 0 || b.order[0].Start != limiter.UsageHour.Start(write) {
		t.Errorf("%d records with a wrong time, booked to %v", n, b.order[0].Start)
	}
}

func TestSnapshotsExpire(t *testing.T) {
	f := newFleet()
	f.write("s", "k", Bucket{"ns", "e", "r"}, begin(), "rpm", 1)
	got := map[limiter.UsageWindow]time.Time{}
	to := newTable()
	var mu sync.Mutex
	to.fault = func(c *Change) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		got[c.Snapshot.Window] = c.Expires
		return true, nil
	}
	b := NewBatch("s", limiter.UsageWindows(), nil)
	b.Add(&f.shards["s"][0])
	if _, err := b.Flush(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	want := map[limiter.UsageWindow]time.Time{
		limiter.UsageHour: time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC), limiter.UsageDay: time.Date(2027, 12, 6, 0, 0, 0, 0, time.UTC), limiter.UsageMonth: {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSequencesAreNumbers(t *testing.T) {
	for _, tt := range []struct {
		a, b Sequence
		want int
	}{{"", "1", -1}, {"9", "10", -1}, {"0009", "9", 0}, {"000000000000000000010", "9", 1}, {"100000000003498069978", "99999999999999999999", 1}} {
		if got := tt.a.Compare(tt.b); got != tt.want {
			t.Errorf("%s and %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
