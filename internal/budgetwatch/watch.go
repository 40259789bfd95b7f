package budgetwatch

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/alert"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/aggregator/awslambda"
	"github.com/ratelimit/ratelimit/pkg/budget"
)

// DefaultEvery is how long a configuration that was read is good for.
const DefaultEvery = time.Minute

// The webhook's calls for one event have a few seconds, and a receiver that hangs must leave time for a
// second call.
const (
	callTimeout = 3 * time.Second
	firstPause  = 200 * time.Millisecond
	mostEvents  = 10_000 // in one call
)

// Config configures a watch. Source and Standings must be set.
type Config struct {
	Source    Source
	Standings aggregator.Standings
	Every     time.Duration     // between two reads of the configuration; 0 = DefaultEvery
	Transport http.RoundTripper // of the webhook; nil = http.DefaultTransport
	Logger    *slog.Logger      // nil = none
	Now       func() time.Time  // nil = time.Now
}

// Watch compares the usage of calls with budgets. One call is under way at a time.
type Watch struct {
	cfg        Config
	thresholds *aggregator.Thresholds

	mu       sync.Mutex // guards the rest: events come from several goroutines of a call
	tag      string
	read     time.Time // the last one, by the wall clock: the other clock stops while the program is frozen
	failures int64     // reads of the configuration in this call
	budgets  *budget.Set
	webhook  config.Webhook
	alerts   *alert.Alerts // of this call
}

var _ awslambda.Budgets = (*Watch)(nil)

// Open reads the configuration, and fails where it cannot be read.
func Open(ctx context.Context, cfg Config) (*Watch, error) {
	if cfg.Every <= 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Watch{cfg: cfg}
	w.thresholds = aggregator.NewThresholds(cfg.Standings, w.inForce, w.tell)
	w.thresholds.Logger = cfg.Logger
	w.read = cfg.Now().Round(0)
	if err := w.refresh(ctx); err != nil {
		return nil, err
	}
	w.alerts = w.newAlerts()
	return w, nil
}

// Begin implements awslambda.Budgets. It reads the configuration where that is due.
func (w *Watch) Begin(ctx context.Context) aggregator.Snapshots {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = 0
	now := w.cfg.Now().Round(0)
	if age := now.Sub(w.read); age >= w.cfg.Every || age < 0 {
		w.read = now
		if err := w.refresh(ctx); err != nil {
			w.failures++
			w.cfg.Logger.ErrorContext(ctx, "the configuration cannot be read again: the budgets of the last good one stay in force", "error", err)
		}
	}
	w.alerts = w.newAlerts()
	return w.thresholds
}

// End implements awslambda.Budgets. It sends the events of the call.
func (w *Watch) End(ctx context.Context) awslambda.Told {
	w.mu.Lock()
	alerts, failures := w.alerts, w.failures
	w.mu.Unlock()
	alerts.Flush(ctx)
	s := alerts.Webhook()
	return awslambda.Told{
		Events: alerts.Events(), WebhookSent: s.Sent, WebhookFailures: s.Failed, WebhookDropped: s.Dropped, ConfigurationFailures: failures,
	}
}

// refresh reads the configuration, where it has changed.
func (w *Watch) refresh(ctx context.Context) error {
	cfg, tag, err := w.cfg.Source.Read(ctx, w.tag)
	if err != nil || cfg == nil {
		return err
	}
	for i := range cfg.Warnings {
		w.cfg.Logger.WarnContext(ctx, "the configuration may not be as it is meant", "problem", cfg.Warnings[i].String())
	}
	w.tag, w.budgets, w.webhook = tag, cfg.Budgets.Set, cfg.Budgets.Webhook
	w.cfg.Logger.InfoContext(ctx, "budgets are in force", "budgets", w.budgets.Len(), "webhook", w.webhook.URL != "", "hash", cfg.Hash)
	return nil
}

// newAlerts returns alerts to the webhook that is in force.
func (w *Watch) newAlerts() *alert.Alerts {
	if w.webhook.URL == "" {
		return alert.New(w.cfg.Logger, nil)
	}
	return alert.New(w.cfg.Logger, alert.NewWebhook(alert.WebhookConfig{
		URL: w.webhook.URL, Key: w.webhook.Key, Transport: w.cfg.Transport,
		Queue: mostEvents, Timeout: callTimeout, Pause: firstPause, Logger: w.cfg.Logger,
	}))
}

func (w *Watch) inForce() *budget.Set {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.budgets
}

func (w *Watch) tell(e budget.Event) {
	w.mu.Lock()
	alerts := w.alerts
	w.mu.Unlock()
	alerts.Tell(e)
}
