package aggregator

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var errFull = errors.New("the archive is full")

// shelf is an archive in memory. fault says whether a write fails, and whether it is there then.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	fault   func() (applied bool, err error) // nil = none
}

func newShelf() *shelf { return &shelf{objects: map[string][]byte{}} }

func (s *shelf) Put(_ context.Context, name string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, err := true, error(nil)
	if s.fault != nil {
		applied, err = s.fault()
	}
	if applied {
		s.objects[name] = slices.Clone(object)
	}
	return err
}

// lines returns the lines of all objects, by their day.
func (s *shelf) lines(t require) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		r, err := gzip.NewReader(bytes.NewReader(s.objects[name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !strings.HasSuffix(name, ".jsonl.gz") {
			t.Fatalf("%s: %v", name, err)
		}
		day := name[:strings.LastIndexByte(name, '/')]
		all[day] = append(all[day], strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

// require is a test, or a check of a property.
type require interface{ Fatalf(string, ...any) }

// asID writes an event as its id.
func asID(e *Expired) ([]byte, error) {
	if e.Event.Detail == "bad" {
		return nil, errors.New("it has no form")
	}
	return []byte(e.Event.ID), nil
}

// expiry is a record of an event that expired.
func expiry(sequence int, at time.Time) Record {
	id := Sequence(strconv.Itoa(sequence))
	return Record{Sequence: id, Key: "event " + string(id), Other: true, Expired: &Expired{Event: limiter.AuditEvent{ID: string(id), Time: at}}}
}

// An archive has each event on its day, also where writes fail and answers are lost, and
// where all records come again: then the objects are the same.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := newShelf()
		to.fault = func() (bool, error) {
			if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
				return rapid.Bool().Draw(t, "applied"), errFull
			}
			return true, nil
		}
		want := map[string][]string{}
		records := make([]Record, 0, rapid.IntRange(1, 30).Draw(t, "events"))
		for i := range cap(records) {
			at := begin().Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "hours")) * time.Hour)
			records = append(records, expiry(i+1, at))
			day := at.Format("year=2006/month=01/day=02")
			want[day] = append(want[day], strconv.Itoa(i+1))
		}
		var first map[string][]byte
		for range 2 {
			lines := NewLines("shard", asID)
			for i := range records {
				lines.Add(&records[i])
			}
			archived := 0
			for tries := 0; ; tries++ {
				done, err := lines.Flush(context.Background(), to)
				archived += done.Events
				if err == nil {
					break
				}
				if !errors.Is(err, errFull) || done.Failed == "" || tries > 1000 {
					t.Fatalf("%+v, %v", done, err)
				}
			}
			if archived != len(records) || lines.size != 0 {
				t.Fatalf("%d events archived, %d bytes left; want %d and 0", archived, lines.size, len(records))
			}
			if diff := cmp.Diff(want, to.lines(t)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if first == nil {
				first = maps.Clone(to.objects)
			} else if diff := cmp.Diff(first, to.objects); diff != "" {
				t.Fatalf("after a repeat (-first +second):\n%s", diff)
			}
		}
	})
}

func TestLinesThatCannotBeWritten(t *testing.T) {
	lines, to := NewLines("a/b", asID), newShelf()
	bad, unread, usage := expiry(1, begin()), expiry(2, time.Time{}), Record{Sequence: "3"}
	bad.Expired.Event.Detail = "bad"
	unread.Expired.Problem, unread.Time = errFull, time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, r := range []Record{bad, unread, usage} {
		lines.Add(&r)
	}
	if done, err := lines.Flush(t.Context(), to); err != nil || done.Events != 1 || done.Failed != "" {
		t.Errorf("%+v, %v", done, err)
	}
	if names := slices.Collect(maps.Keys(to.objects)); !slices.Equal(names, []string{"year=2027/month=01/day=02/a-b_2_2.jsonl.gz"}) {
		t.Errorf("objects %q", names)
	}
	letters := lines.Letters()
	if len(letters) != 1 || letters[0].Sequence != "1" || letters[0].Key != "event 1" || !strings.Contains(letters[0].Problem.Error(), "it has no form") {
		t.Errorf("letters %+v", letters)
	}
	if again := lines.Letters(); len(again) != 0 {
		t.Errorf("letters again: %+v", again)
	}
}

// The position in the stream is saved when the events before it are in the archive.
func TestPollerArchives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, to := newRig(t), newShelf()
		r.add("s", "", r.fleet, "k", 3)
		r.records["s"] = append(r.records["s"], expiry(100, begin()), expiry(101, begin()))
		to.fault = func() (bool, error) { return false, errFull }
		p, stop := r.start("a", func(cfg *Config) { cfg.Archive, cfg.Encode = to, asID })
		time.Sleep(time.Minute)
		r.counted("while the archive fails", 3)
		if l := r.leases.get("s"); l.Position != "" {
			t.Errorf("the position is %s", l.Position)
		}
		if s := p.Stats(); s.Failures == 0 || s.Archived != 0 {
			t.Errorf("%+v", s)
		}
		to.mu.Lock()
		to.fault = nil
		to.mu.Unlock()
		time.Sleep(time.Minute)
		stop()
		if l := r.leases.get("s"); l.Position != "101" {
			t.Errorf("the position is %s, want 101", l.Position)
		}
		if s := p.Stats(); s.Archived != 2 || s.Records != 5 {
			t.Errorf("%+v", s)
		}
		if diff := cmp.Diff(map[string][]string{"year=2026/month=10/day=31": {"100", "101"}}, to.lines(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestArchiveNeedsAForm(t *testing.T) {
	r := newRig(t)
	if _, err := New(Config{Source: r.stream, Snapshots: r.to, Leases: r.leases, Owner: "a", Archive: newShelf()}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
