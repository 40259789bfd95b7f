package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// event returns an event of an entity.
func event(entity string) limiter.BudgetEvent {
	return limiter.BudgetEvent{
		Namespace: "default", Entity: entity, Resource: "gpt-4", Limit: "tokens", Window: limiter.UsageDay,
		Start: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Percent: 80, Tokens: 1000, Used: 800_250,
	}
}

// receiver is a real receiver of calls, which answers as a test says.
type receiver struct {
	*httptest.Server

	key    []byte
	answer func(call int) int

	mu     sync.Mutex
	calls  int
	bodies []string
	bad    []string
	got    chan string // entity of each call that was accepted
}

func newReceiver(t *testing.T, answer func(call int) int) *receiver {
	t.Helper()
	r := &receiver{key: bytes.Repeat([]byte("k"), 32), answer: answer, got: make(chan string, 100)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	mac := hmac.New(sha256.New, r.key)
	_, _ = io.WriteString(mac, req.Header.Get("Ratelimit-Timestamp")+"."+string(body))
	if want := "v1=" + hex.EncodeToString(mac.Sum(nil)); req.Header.Get("Ratelimit-Signature") != want {
		r.bad = append(r.bad, "signature "+req.Header.Get("Ratelimit-Signature"))
	}
	r.bodies = append(r.bodies, string(body))
	code := r.answer(r.calls)
	w.WriteHeader(code)
	if code/100 == 2 {
		var e struct {
			Entity string `json:"entity"`
		}
		_ = json.Unmarshal(body, &e)
		r.got <- e.Entity
	}
}

// run runs a webhook to the receiver until the test ends or stop is called.
func (r *receiver) run(t *testing.T, change func(*WebhookConfig)) (w *Webhook, stop func()) {
	t.Helper()
	cfg := WebhookConfig{URL: r.URL, Key: r.key, Pause: time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	w = NewWebhook(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return w, stop
}

// A flush has sent the events of the queue when it returns. It makes calls again only while it has time.
func TestFlush(t *testing.T) {
	r := newReceiver(t, func(call int) int { return map[bool]int{true: 503, false: 204}[call%2 == 1] })
	w := NewWebhook(WebhookConfig{URL: r.URL, Key: r.key, Pause: time.Millisecond})
	w.Flush(t.Context())
	for range 20 {
		w.Send(event("a"))
	}
	w.Flush(t.Context())
	if s := w.Stats(); s.Sent != 20 || s.Failed == 0 || s.Dropped != 0 || s.Queued != 0 || len(r.bad) > 0 {
		t.Errorf("%+v, %q", s, r.bad)
	}

	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the caller has gone
		<-r.Context().Done()
	}))
	defer hang.Close()
	var log bytes.Buffer
	w = NewWebhook(WebhookConfig{URL: hang.URL + "/hush", Key: r.key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 20 {
		w.Send(event("a"))
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	begun := time.Now()
	w.Flush(ctx)
	if s := w.Stats(); s.Dropped != 20 || s.Queued != 0 || time.Since(begun) > 5*time.Second {
		t.Errorf("a receiver that hangs: %+v after %v", s, time.Since(begun))
	}
	if text := log.String(); strings.Count(text, "level=ERROR") != 20 || strings.Contains(text, "hush") {
		t.Errorf("log:\n%s", text)
	}
}

// A call that failed is made again, with the same event and a signature that holds.
func TestCallsAreMadeAgain(t *testing.T) {
	r := newReceiver(t, func(call int) int { return []int{500, 503, 429, 204}[call-1] })
	w, stop := r.run(t, nil)
	w.Send(event("a"))
	if got := <-r.got; got != "a" {
		t.Errorf("the event of %q was accepted", got)
	}
	stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(AlertStats{Sent: 1, Failed: 3}, w.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if r.calls != 4 || len(r.bad) > 0 || r.bodies[0] != r.bodies[3] {
		t.Errorf("%d calls, %q, %q", r.calls, r.bad, r.bodies)
	}
	e := event("a")
	want := `{"id":"` + e.ID() + `","type":"budget.threshold","namespace":"default","entity":"a","resource":"gpt-4","limit":"tokens","window":"day",` +
		`"start":"2026-11-01T00:00:00Z","end":"2026-11-02T00:00:00Z","percent":80,"budget":1000,"used":800.250}`
	if r.bodies[0] != want {
		t.Errorf("got  %s\nwant %s", r.bodies[0], want)
	}
}

// An event that the receiver refuses, or never accepts, is dropped: the next one is sent. No log has
// the address, which may be a secret.
func TestEventsAreDropped(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(call int) int
		calls  int
	}{
		"refused":        {func(call int) int { return map[bool]int{true: 400, false: 200}[call == 1] }, 2},
		"redirected":     {func(call int) int { return map[bool]int{true: 302, false: 200}[call == 1] }, 2},
		"never accepted": {func(call int) int { return map[bool]int{true: 500, false: 200}[call <= 3] }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := newReceiver(t, tt.answer)
			w := NewWebhook(WebhookConfig{
				URL: r.URL + "/hush", Key: r.key, Pause: time.Millisecond, Calls: 3, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			w.Send(event("a"))
			w.Flush(t.Context())
			w.Send(event("b"))
			w.Flush(t.Context())
			if got := <-r.got; got != "b" {
				t.Errorf("the event of %q was accepted", got)
			}
			if s := w.Stats(); s.Sent != 1 || s.Dropped != 1 || r.calls != tt.calls {
				t.Errorf("%+v, %d calls; want %d", s, r.calls, tt.calls)
			}
			if text := log.String(); !strings.Contains(text, "dropped") || strings.Contains(text, "hush") {
				t.Error(text)
			}
		})
	}
}

// A receiver that is not there: the queue is bounded, and no error has the address.
func TestTheQueueIsBounded(t *testing.T) {
	var log bytes.Buffer
	w := NewWebhook(WebhookConfig{URL: "http://127.0.0.1:1/hush", Queue: 2, Calls: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	alerts := NewAlerts(slog.New(slog.NewTextHandler(&log, nil)), w)
	for _, entity := range []string{"a", "b", "c", "d"} {
		alerts.Tell(event(entity))
	}
	if diff := cmp.Diff(AlertStats{Dropped: 2, Queued: 2}, alerts.Webhook()); diff != "" || alerts.Events() != 4 {
		t.Errorf("%d events; stats (-want +got):\n%s", alerts.Events(), diff)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended) // one call for each of the queue
	if diff := cmp.Diff(AlertStats{Dropped: 4, Failed: 2}, w.Stats()); diff != "" {
		t.Errorf("stats at the end (-want +got):\n%s", diff)
	}
	if text := log.String(); strings.Contains(text, "hush") || strings.Count(text, "a budget is used to a threshold") != 4 || !strings.Contains(text, "the queue is full") {
		t.Error(text)
	}
}

// Events that wait are sent at the end.
func TestTheQueueIsSentAtTheEnd(t *testing.T) {
	r := newReceiver(t, func(int) int { return 200 })
	w := NewWebhook(WebhookConfig{URL: r.URL, Key: r.key})
	w.Send(event("a"))
	w.Send(event("b"))
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended)
	if s := w.Stats(); s.Sent != 2 || s.Queued != 0 {
		t.Errorf("%+v, want 2 sent", s)
	}
}
