package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// hanging is a receiver that answers for some entities, and hangs for the others.
type hanging struct {
	answers string // the begin of their names
	got     chan string
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	var e struct {
		Entity string `json:"entity"`
	}
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return nil, err
	}
	if h.answers == "" || !strings.HasPrefix(e.Entity, h.answers) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	h.got <- e.Entity
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// invented is an event of an entity that a client may have invented.
func invented(entity string) limiter.BudgetEvent {
	e := event(entity)
	e.Shared = true
	return e
}

// However many events clients make by names that they invent, and however long the receiver hangs for these: the
// event of an entity with a budget of its own is sent at once, and has its line in the log.
func TestInventedNamesPushNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		r := &hanging{answers: "real", got: make(chan string, 100)}
		w := NewWebhook(WebhookConfig{URL: "http://alerts.example.com", Key: []byte("k"), Transport: r, Logger: log})
		alerts := NewAlerts(log, w)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		for i := range 20_000 {
			alerts.Tell(invented(fmt.Sprint("invented", i)))
		}
		synctest.Wait()
		began := time.Now()
		for i := range 20 {
			alerts.Tell(event(fmt.Sprint("real", i)))
		}
		for range 20 {
			<-r.got
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the events were sent after %v, want at once", took)
		}
		synctest.Wait() // for the answers
		if s := w.Stats(); s.Sent != 20 || s.Queued != DefaultQueue || alerts.Events() != 20_020 {
			t.Errorf("%+v, %d events", s, alerts.Events())
		}
		stop()
		running.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v, want 1s at most", took)
		}
		lines := strings.Count(text.String(), "a budget is used to a threshold")
		if lines < 20+1 || lines > 20+10*10 || !strings.Contains(text.String(), "entity=real19") || strings.Count(text.String(), "\n") > 1000 {
			t.Errorf("%d lines of events, %d in all", lines, strings.Count(text.String(), "\n"))
		}
	})
}

// A receiver that hangs holds up an event for a bounded time, and others not at all.
func TestADeliveryHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &hanging{answers: "quick", got: make(chan string, 100)}
		w := NewWebhook(WebhookConfig{
			URL: "http://alerts.example.com", Key: []byte("k"), Transport: r, Delivery: 15 * time.Second,
		})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		w.Send(event("slow"))
		synctest.Wait()
		w.Send(event("quick"))
		if got := <-r.got; got != "quick" {
			t.Errorf("the event of %q was accepted", got)
		}
		time.Sleep(15*time.Second + time.Millisecond)
		synctest.Wait()
		if s := w.Stats(); s.Sent != 1 || s.Dropped != 1 {
			t.Errorf("after 15s: %+v, want one that was sent and one that was dropped", s)
		}
		stop()
		running.Wait()
	})
}
