package awscmd

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// defaultBudgetPoll is how long a configuration that was read is good for.
const defaultBudgetPoll = time.Minute

// The webhook's calls for one event have a few seconds, and a receiver that hangs must leave time for a
// second call.
const (
	callTimeout = 3 * time.Second
	firstPause  = 200 * time.Millisecond
	mostEvents  = 10_000 // in one call
)

// BudgetWatchConfig configures a watch. Source and Standings must be set.
type BudgetWatchConfig struct {
	Source    BudgetSource
	Standings aggregator.Standings
	Every     time.Duration     // between two reads of the configuration; 0 = DefaultEvery
	Transport http.RoundTripper // of the webhook; nil = http.DefaultTransport
	Logger    *slog.Logger      // nil = none
	Now       func() time.Time  // nil = time.Now
}

// BudgetWatch compares the usage of calls with budgets. One call is under way at a time.
type BudgetWatch struct {
	cfg        BudgetWatchConfig
	thresholds *aggregator.Thresholds

	mu       sync.Mutex // guards the rest: events come from several goroutines of a call
	tag      string
	read     time.Time // the last one, by the wall clock: the other clock stops while the program is frozen
	failures int64     // reads of the configuration in this call
	budgets  *limiter.BudgetSet
	webhook  config.Webhook
	alerts   *server.Alerts // of this call
}

var _ FunctionBudgets = (*BudgetWatch)(nil)

// OpenBudgetWatch reads the configuration, and fails where it cannot be read.
func OpenBudgetWatch(ctx context.Context, cfg BudgetWatchConfig) (*BudgetWatch, error) {
	cfg.Every = cmp.Or(max(cfg.Every, 0), defaultBudgetPoll)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &BudgetWatch{cfg: cfg}
	w.thresholds = aggregator.NewThresholds(cfg.Standings, w.inForce, w.tell)
	w.thresholds.Logger = cfg.Logger
	w.read = cfg.Now().Round(0)
	if err := w.refresh(ctx); err != nil {
		return nil, err
	}
	w.alerts = w.newAlerts()
	return w, nil
}

// Begin implements FunctionBudgets. It reads the configuration where that is due.
func (w *BudgetWatch) Begin(ctx context.Context) aggregator.Snapshots {
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

// End implements FunctionBudgets. It sends the events of the call.
func (w *BudgetWatch) End(ctx context.Context) ToldEvents {
	w.mu.Lock()
	alerts, failures := w.alerts, w.failures
	w.mu.Unlock()
	alerts.Flush(ctx)
	s := alerts.Webhook()
	return ToldEvents{
		Events: alerts.Events(), WebhookSent: s.Sent, WebhookFailures: s.Failed, WebhookDropped: s.Dropped, ConfigurationFailures: failures,
	}
}

// refresh reads the configuration, where it has changed.
func (w *BudgetWatch) refresh(ctx context.Context) error {
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
func (w *BudgetWatch) newAlerts() *server.Alerts {
	if w.webhook.URL == "" {
		return server.NewAlerts(w.cfg.Logger, nil)
	}
	return server.NewAlerts(w.cfg.Logger, server.NewWebhook(server.WebhookConfig{
		URL: w.webhook.URL, Key: w.webhook.Key, Transport: w.cfg.Transport,
		Queue: mostEvents, Timeout: callTimeout, Pause: firstPause, Logger: w.cfg.Logger,
	}))
}

func (w *BudgetWatch) inForce() *limiter.BudgetSet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.budgets
}

func (w *BudgetWatch) tell(e limiter.BudgetEvent) {
	w.mu.Lock()
	alerts := w.alerts
	w.mu.Unlock()
	alerts.Tell(e)
}
