package server

import (
	"log/slog"

	"github.com/ratelimit/ratelimit/config"
)

// OpenAlerts returns the alerts of budgets, in the log and by the configured webhook.
func OpenAlerts(cfg config.Webhook, log *slog.Logger) *Alerts {
	if cfg.URL == "" {
		return NewAlerts(log, nil)
	}
	return NewAlerts(log, NewWebhook(WebhookConfig{URL: cfg.URL, Key: cfg.Key, Logger: log}))
}

// budgetStats are the numbers of alerts.
type budgetStats struct {
	AlertStats

	events int64
}

// NewBudgetMetrics reports the alerts of budgets.
func NewBudgetMetrics(alerts *Alerts) *StatsMetrics[budgetStats] {
	m := &StatsMetrics[budgetStats]{Prefix: "ratelimit_budget_", Look: func() budgetStats { return budgetStats{alerts.Webhook(), alerts.Events()} }}
	m.Count("events_total", "Thresholds of budgets that usage has reached; the log has a line for each.", func(s *budgetStats) int64 { return s.events })
	m.Count("webhook_sent_total", "Budget events that the receiver accepted.", func(s *budgetStats) int64 { return s.Sent })
	m.Count("webhook_failures_total", "Calls of the webhook that failed.", func(s *budgetStats) int64 { return s.Failed })
	m.Count("webhook_dropped_total", "Budget events not delivered: a full queue, a refusal, or failed calls.", func(s *budgetStats) int64 { return s.Dropped })
	m.Gauge("webhook_queued", "Budget events that wait for the webhook.", func(s *budgetStats) float64 { return float64(s.Queued) })
	return m
}
