package main

import (
	"context"
	"log/slog"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/alert"
)

// newAlerts returns the alerts of budgets, in the log and by the configured webhook.
func newAlerts(cfg config.Webhook, log *slog.Logger) *alert.Alerts {
	if cfg.URL == "" {
		return alert.New(log, nil)
	}
	return alert.New(log, alert.NewWebhook(alert.WebhookConfig{URL: cfg.URL, Key: cfg.Key, Logger: log}))
}

// watchBudgets compares the usage of a data directory with the budgets in force. In a fleet that is done
// by ratelimit aggregate.
func (s *service) watchBudgets(ctx context.Context) error {
	if s.durable == nil {
		return nil
	}
	return s.alerts.Run(ctx, func(ctx context.Context) error {
		s.durable.WatchBudgets(ctx, 0, s.budgets.Load, s.alerts.Tell)
		return nil
	})
}

// budgetStats are the numbers of alerts.
type budgetStats struct {
	alert.Stats

	events int64
}

// newBudgetMetrics reports the alerts of budgets.
func newBudgetMetrics(alerts *alert.Alerts) *statsMetrics[budgetStats] {
	m := &statsMetrics[budgetStats]{prefix: "ratelimit_budget_", look: func() budgetStats { return budgetStats{alerts.Webhook(), alerts.Events()} }}
	m.count("events_total", "Thresholds of budgets that usage has reached; the log has a line for each.", func(s *budgetStats) int64 { return s.events })
	m.count("webhook_sent_total", "Budget events that the webhook's receiver has accepted.", func(s *budgetStats) int64 { return s.Sent })
	m.count("webhook_failures_total", "Calls of the webhook that failed.", func(s *budgetStats) int64 { return s.Failed })
	m.count("webhook_dropped_total", "Budget events that are not delivered: the queue was full, the receiver refused them, or all calls failed.", func(s *budgetStats) int64 { return s.Dropped })
	m.gauge("webhook_queued", "Budget events that wait for the webhook.", func(s *budgetStats) float64 { return float64(s.Queued) })
	return m
}
