package clockjump_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// history is what programs have admitted of one bucket, by the clock of the test.
type history struct {
	key   string
	begin time.Time

	mu  sync.Mutex
	all []windows.Taking
}

func newHistory(key string) *history { return &history{key: key, begin: time.Now()} }

func (h *history) now() int64 { return time.Since(h.begin).Microseconds() }

// ask asks a program for one token.
func (h *history) ask(t *testing.T, p *program) (admitted bool) {
	t.Helper()
	from := h.now()
	if !p.ask(t, h.key, "x") {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, windows.Taking{From: from, To: h.now(), Amount: 1000})
	return true
}

// drain asks until the bucket is empty, and returns what it had.
func (h *history) drain(t *testing.T, p *program) (n int) {
	t.Helper()
	for h.ask(t, p) {
		n++
	}
	return n
}

// between is how many calls that began in a span of time were admitted.
func (h *history) between(from, to int64) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, taken := range h.all {
		if taken.From >= from && taken.From < to {
			n++
		}
	}
	return n
}

// check wants no window of time with more than the limit, by the true time. Buckets have whole
// milliseconds.
func (h *history) check(t *testing.T, limit windows.Bucket) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	found, err := windows.Check(limit, h.all, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if found.Broken {
		t.Errorf("%s: %v", h.key, found.Tightest)
	}
	t.Logf("%s: %d admitted in all; tightest: %v", h.key, len(h.all), found.Tightest)
}
