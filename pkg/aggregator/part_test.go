package aggregator

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// picky are snapshots that refuse changes with records of some limits for good, in all windows.
type picky struct {
	*table

	bad   map[string]bool
	calls int
}

func newPicky() *picky {
	p := &picky{table: newTable(), bad: map[string]bool{}}
	p.fault = func(c *Change) (bool, error) {
		p.calls++
		for limit := range c.Used {
			if p.bad[limit] {
				return false, fmt.Errorf("%w: %s", limiter.ErrInvalid, limit)
			}
		}
		return true, nil
	}
	return p
}

// A record that its snapshots refuse for good becomes one letter, and every other record of its batch counts.
func TestOnlyTheRefusedRecordIsBuried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, to := newFleet(), newPicky()
		n := rapid.IntRange(1, 300).Draw(t, "records")
		bad := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 5), rapid.ID).Draw(t, "bad")
		for _, i := range bad {
			to.bad[fmt.Sprint("l", i)] = true
		}
		b, want, used := NewBatch("s", limiter.UsageWindows(), nil), map[Sequence]bool{}, map[string]int64{}
		for i := range n {
			limit := fmt.Sprint("l", i)
			f.write("s", limit, Bucket{"ns", "e", "r"}, begin(), limit, 1)
			r := &f.shards["s"][i]
			if b.Add(r); to.bad[limit] {
				want[r.Sequence] = true
				continue
			}
			for _, w := range limiter.UsageWindows() {
				used[usageKey(Snapshot{r.Bucket, w, w.Start(begin())}, limit)] = 1
			}
		}
		if done, err := b.Flush(context.Background(), to); err != nil || done.Failed != "" || !b.Empty() {
			t.Fatalf("%+v, %v", done, err)
		}
		told := map[Sequence]bool{}
		for _, l := range b.Letters() {
			if told[l.Sequence] || len(l.Refused) != 3 || !errors.Is(l.Problem, limiter.ErrInvalid) || l.Key == "" {
				t.Fatalf("letter %+v", l)
			}
			told[l.Sequence] = true
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Fatalf("letters (-want +got):\n%s", diff)
		}
		wantSame(t, used, to.used)
		if most := 3 * (1 + len(bad)*32); to.calls > most {
			t.Fatalf("%d writes for %d of %d records, want at most %d", to.calls, len(bad), n, most)
		}
	})
}

// A snapshot that refuses every record costs a bounded number of writes, and each record has one letter.
func TestASnapshotThatRefusesAll(t *testing.T) {
	f, to := newFleet(), newPicky()
	to.bad["l"] = true
	b := NewBatch("s", []limiter.UsageWindow{limiter.UsageHour}, nil)
	const records = 3 * maxRefused
	for i := range records {
		f.write("s", fmt.Sprint("k", i), Bucket{"ns", "e", "r"}, begin(), "l", 1)
		b.Add(&f.shards["s"][i])
	}
	done, err := b.Flush(t.Context(), to)
	if letters := b.Letters(); err != nil || done.Written != 0 || to.calls != maxRefused || len(letters) != records {
		t.Errorf("%+v, %v, %d writes, %d letters of %d", done, err, to.calls, len(letters), records)
	}
}

// A record that one window refuses, and another one later, is reported once: it is one
// record.
func TestALetterIsToldOnce(t *testing.T) {
	f, to := newFleet(), newTable()
	f.write("s", "k", Bucket{"ns", "e", "r"}, begin(), "l", 1)
	b := NewBatch("s", []limiter.UsageWindow{limiter.UsageHour, limiter.UsageDay}, nil)
	b.Add(&f.shards["s"][0])
	later := errors.New("later")
	to.fault = func(c *Change) (bool, error) {
		if c.Snapshot.Window == limiter.UsageHour || later == nil {
			return false, limiter.ErrInvalid
		}
		return false, later
	}
	_, err := b.Flush(t.Context(), to)
	if letters := b.Letters(); !errors.Is(err, later) || len(letters) != 1 || !cmp.Equal(letters[0].Refused, []limiter.UsageWindow{limiter.UsageHour}) {
		t.Errorf("%v, %+v", err, letters)
	}
	later = nil
	_, err = b.Flush(t.Context(), to)
	if letters := b.Letters(); err != nil || len(letters) != 0 || !b.Empty() {
		t.Errorf("again: %v, %+v", err, letters)
	}
}
