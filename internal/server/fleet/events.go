package fleet

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/api"
)

const (
	maxEvents = 100 // that a process remembers, and that an answer has
	maxText   = 300 // of an event, in bytes
	eventAge  = 24 * time.Hour
	// repeated is for how long an event that equals the one before it is not recorded again.
	repeated = time.Minute
)

// Events are the last events of this process. They are safe for concurrent use. Create them with [NewEvents].
type Events struct {
	now func() time.Time

	mu   sync.Mutex
	ring []api.Event // the oldest first, at most maxEvents
}

// NewEvents returns no events yet, by a clock.
func NewEvents(now func() time.Time) *Events { return &Events{now: now} }

// Record notes an event, with a sentence for people. A long text is cut. An event that repeats the last one
// within a minute is left out. Nil events record nothing.
func (e *Events) Record(kind api.EventKind, text string) {
	if e == nil {
		return
	}
	at := e.now().UTC().Truncate(time.Millisecond)
	e.mu.Lock()
	defer e.mu.Unlock()
	text = cutText(text, maxText)
	if n := len(e.ring); n > 0 && e.ring[n-1].Kind == kind && e.ring[n-1].Text == text && at.Sub(e.ring[n-1].Time) < repeated {
		return
	}
	if len(e.ring) == maxEvents {
		e.drop()
	}
	e.ring = append(e.ring, api.Event{Time: at, Kind: kind, Text: text})
}

// drop forgets the oldest event of the kind that has the most, so that a flood of one kind hides no other.
func (e *Events) drop() {
	number, most := make(map[api.EventKind]int), api.EventKind("")
	for i := range e.ring {
		kind := e.ring[i].Kind
		if number[kind]++; number[kind] > number[most] {
			most = kind
		}
	}
	oldest := slices.IndexFunc(e.ring, func(event api.Event) bool { return event.Kind == most })
	e.ring = slices.Delete(e.ring, oldest, oldest+1)
}

// last returns the newest events of the last 24 hours, at most n, the newest first, with the id of their replica.
func (e *Events) last(n int, now time.Time, replica string) []api.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]api.Event, 0, min(n, len(e.ring)))
	for i := len(e.ring) - 1; i >= 0 && len(all) < n && now.Sub(e.ring[i].Time) < eventAge; i-- {
		event := e.ring[i]
		event.Replica = replica
		all = append(all, event)
	}
	return all
}

// cutText returns a text as UTF-8 of at most that many bytes.
func cutText(text string, most int) string {
	const end = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	most -= len(end)
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + end
}
