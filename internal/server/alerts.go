package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Alerts reports events in the log and by a webhook. It is safe for concurrent use.
type Alerts struct {
	log     *slog.Logger
	lines   sampled
	webhook *Webhook // nil = none
	events  atomic.Int64
}

// NewAlerts returns alerts; webhook nil = there is none.
func NewAlerts(log *slog.Logger, webhook *Webhook) *Alerts {
	return &Alerts{log: log, webhook: webhook}
}

// Tell reports an event. It does not wait for the webhook.
func (a *Alerts) Tell(e limiter.BudgetEvent) {
	a.events.Add(1)
	attrs, ok := a.lines.due(e.Shared, "percent", e.Percent, "limit", e.Limit, "window", e.Window.String(), "start", e.Start,
		"namespace", e.Namespace, "entity", e.Entity, "resource", e.Resource, "budget", e.Tokens, "used", inTokens(e.Used).String(), "event", e.ID())
	if ok {
		a.log.Warn("a budget is used to a threshold", attrs...)
	}
	if a.webhook != nil {
		a.webhook.Send(e)
	}
}

// Run runs watch, which calls Tell and ends with ctx, and has events sent meanwhile, and those that wait at its
// end. It returns the error of watch.
func (a *Alerts) Run(ctx context.Context, watch func(context.Context) error) error {
	if a.webhook == nil {
		return watch(ctx)
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sender sync.WaitGroup
	sender.Go(func() { a.webhook.Run(sending) })
	err := watch(ctx)
	stop()
	sender.Wait()
	return err
}

// Flush has the reported events sent before it returns, within the time of ctx. It takes the place of Run.
func (a *Alerts) Flush(ctx context.Context) {
	if a.webhook != nil {
		a.webhook.Flush(ctx)
	}
}

// finish sends the events that were told after Run, for a short time. A nil Alerts has none.
func (a *Alerts) finish(ctx context.Context) {
	if a == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, lastCalls)
	defer stop()
	a.Flush(ctx)
}

// Events returns the number of events that were reported.
func (a *Alerts) Events() int64 { return a.events.Load() }

// Webhook returns the calls so far.
func (a *Alerts) Webhook() AlertStats { return a.webhook.Stats() }
