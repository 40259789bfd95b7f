package awscmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// text is a configuration in memory.
type text string

func (s text) Read(context.Context, string) (*config.Config, string, error) {
	cfg, err := config.ParseBudgets("ratelimit.yaml", []byte(s))
	return cfg, "1", err
}

const watched = `
limits: {system: {rpm: {rate: 1/day, budget: {day: 10}}}}
budgets:
  webhook: {url: "http://alerts.example.com/x", key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
`

// full is a snapshot whose usage is that of its change.
type full struct{ aggregator.Standings }

func (full) Post(_ context.Context, c *aggregator.Change) (aggregator.Sequence, aggregator.Standing, error) {
	return "", aggregator.Standing{Entity: "e", Resource: "r", Used: c.Used, Told: map[aggregator.Mark]string{}}, nil
}

func (full) Note(context.Context, *aggregator.Snapshot, []aggregator.Mark, string) (bool, aggregator.Standing, error) {
	return true, aggregator.Standing{}, nil
}

func (full) NamespaceName(context.Context, string) (string, error) { return "default", nil }

func (full) StoredBudgets(context.Context, aggregator.Bucket) (limiter.StoredBudgets, error) {
	return limiter.StoredBudgets{}, nil
}

// budgetReceiver answers calls of a webhook.
type budgetReceiver func(*http.Request) (int, error)

func (r budgetReceiver) RoundTrip(req *http.Request) (*http.Response, error) {
	code, err := r(req)
	return &http.Response{StatusCode: code, Body: http.NoBody}, err
}

// call is one call whose usage passes two thresholds, and that leaves some time at its end.
func call(t *testing.T, w *BudgetWatch, left time.Duration) ToldEvents {
	t.Helper()
	change := &aggregator.Change{Snapshot: aggregator.Snapshot{Window: limiter.UsageDay, Start: time.Now()}, Used: map[string]int64{"rpm": 9500}}
	if _, err := w.Begin(t.Context()).Add(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), left)
	defer stop()
	return w.End(ctx)
}

// The events of a call are sent when it ends, by some calls of the webhook; those that are not are dropped then. The
// receiver may answer, refuse, fail or hang.
func TestEventsAreSentInTheCall(t *testing.T) {
	for name, tt := range map[string]struct {
		receiver budgetReceiver
		want     ToldEvents
		least    int64 // failures
	}{
		"it accepts": {func(*http.Request) (int, error) { return 204, nil }, ToldEvents{Events: 2, WebhookSent: 2}, 0},
		"it refuses": {func(*http.Request) (int, error) { return 400, nil }, ToldEvents{Events: 2, WebhookDropped: 2}, 2},
		"it fails":   {func(*http.Request) (int, error) { return 500, nil }, ToldEvents{Events: 2, WebhookDropped: 2}, 8},
		"it hangs": {func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		}, ToldEvents{Events: 2, WebhookDropped: 2}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := OpenBudgetWatch(t.Context(), BudgetWatchConfig{Source: text(watched), Standings: full{}, Transport: tt.receiver})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				got := call(t, w, 10*time.Second)
				if got.WebhookFailures < tt.least || time.Since(begun) > 10*time.Second {
					t.Errorf("%d failures, want at least %d, after %v", got.WebhookFailures, tt.least, time.Since(begun))
				}
				got.WebhookFailures = 0
				if got != tt.want {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

func TestOpenNeedsAConfiguration(t *testing.T) {
	if _, err := OpenBudgetWatch(t.Context(), BudgetWatchConfig{Source: text("budgets: 7"), Standings: full{}}); err == nil {
		t.Error("a bad configuration is taken")
	}
	if _, err := OpenBudgetSource(t.Context(), "s3://x"); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func ExampleOpen() {
	w, err := OpenBudgetWatch(context.Background(), BudgetWatchConfig{
		Source: text("limits: {system: {rpm: {rate: 1/day, budget: {day: 10}}}}"), Standings: full{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	change := &aggregator.Change{Snapshot: aggregator.Snapshot{Window: limiter.UsageDay}, Used: map[string]int64{"rpm": 9500}}
	if _, err := w.Begin(context.Background()).Add(context.Background(), change); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.End(context.Background()).Events, "events")
	// Output: 2 events
}
