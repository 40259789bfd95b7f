package lane

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Numbers of states and events, which are no states and events themselves.
const (
	states = int(over) + 1
	events = int(ended) + 1
)

// tableOf reads the transitions in the package comment.
func tableOf(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "left by\n")
	to := map[string]string{}
	for line := range strings.Lines(rows) {
		row, found := strings.CutPrefix(line, "//\t")
		if !found {
			break
		}
		name, _, _ := strings.Cut(row, " ")
		for step := range strings.SplitSeq(row, ",") {
			before, next, _ := strings.Cut(step, " → ")
			to[name+" "+before[strings.LastIndexByte(before, ' ')+1:]] = strings.TrimSpace(next)
		}
	}
	return to
}

// The table of the package comment has all transitions, and no others.
func TestTransitionsAreThoseOfTheTable(t *testing.T) {
	want := tableOf(t)
	for i := range states * events {
		s, e := state(i/events), event(i%events) // #nosec G115 -- few
		step := s.String() + " " + e.String()
		got := ""
		if next, ok := s.after(e); ok {
			got = next.String()
		}
		if got != want[step] {
			t.Errorf("%s leads to %q, want %q", step, got, want[step])
		}
		delete(want, step)
	}
	if len(want) > 0 {
		t.Errorf("the table has unknown transitions: %v", want)
	}
}

// An event that cannot happen ends a request with an unknown outcome, and counts it as owed no more.
func TestAnEventThatCannotHappenEndsTheRequest(t *testing.T) {
	for i := range states * events {
		s, e := state(i/events), event(i%events) // #nosec G115 -- few
		_, ok := s.after(e)
		if ok || s == over {
			continue
		}
		_, l, _, _ := fresh(t)
		r := &Request{state: s}
		if s.counts() {
			l.host.work.add()
			l.host.Counters.Owed.Add(1)
		}
		l.closer.happen(r, e)
		if r.state != over || !errors.Is(r.Err, limiter.ErrUncertain) || l.host.Counters.Owed.Load() != 0 {
			t.Errorf("%v %v: it is %v with %v, and %d are owed", s, e, r.state, r.Err, l.host.Counters.Owed.Load())
		}
	}
}
