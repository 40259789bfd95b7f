package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// outages follows the outages of a table: it says when one begins and when it is over,
// and counts the calls that a policy decided in its place.
type outages struct {
	log    *slog.Logger
	events *fleet.Events

	mu      sync.Mutex
	kind    config.StoreType // of the store
	store   tableStore       // nil = none yet, or a store that is in this process
	policy  limiter.Policy   // of the configuration in force
	own     int              // rules that have another policy
	began   time.Time        // of the outage that was reported last
	run     time.Time        // of the failures that decided counts for
	last    time.Time        // when one of these calls was decided
	decided int64            // calls that a policy decided since
}

// late is how long after a call was decided by a policy it is noticed at most that the
// table did not answer: a message may take that long.
const late = time.Second

// tableStore is a store whose table is on a server.
type tableStore interface {
	limiter.Store
	State() dynamo.State
	FailingSince() time.Time
	Stats() dynamo.Stats
}

// use sets the store to follow.
func (o *outages) use(kind config.StoreType, store tableStore) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kind, o.store = kind, store
}

// configured notes which policies are in force.
func (o *outages) configured(cfg *config.Config) {
	own := 0
	for _, d := range cfg.Rules.Domains() {
		for _, r := range d.Rules() {
			if p := r.OnUnavailable(); p != limiter.Unset && p != cfg.Static.OnUnavailable {
				own++
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.policy, o.own = cfg.Static.OnUnavailable, own
}

// fallback counts a call that a policy decided. Those of one outage count together,
// from the first that the table did not answer; a call that is slow now and then starts anew.
func (o *outages) fallback() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.store == nil {
		return
	}
	o.follow(o.store.FailingSince())
	o.decided++
	o.last = time.Now()
}

// follow begins to count anew, unless the calls that were counted are of the same run of
// failures, or came just before it was noticed.
func (o *outages) follow(run time.Time) {
	same := run.Equal(o.run) && !run.IsZero()
	if !same && (!o.run.IsZero() || time.Since(o.last) >= late) {
		o.decided = 0
	}
	o.run = run
}

// observe reports that an outage has begun, or is over.
func (o *outages) observe(state dynamo.State) {
	o.mu.Lock()
	over := state.Condition == dynamo.Available
	if !over {
		o.began = state.Since
	}
	o.follow(o.began)
	policy, decided, lasted := o.policy.String(), o.decided, state.Since.Sub(o.began).Round(time.Millisecond)
	attrs := []slog.Attr{
		slog.Time("since", o.began.UTC()), slog.String("on_unavailable", policy),
		slog.Int("rules_with_another", o.own), slog.Int64("calls_decided_by_policy", decided),
	}
	o.mu.Unlock()
	if over {
		attrs = append(attrs, slog.Duration("lasted", lasted))
		o.log.LogAttrs(context.Background(), slog.LevelInfo, "the store answers again", attrs...)
		o.events.Record(api.EventRecovered, fmt.Sprintf("The store answers again after %v; the policy %s decided %d calls.", lasted, policy, decided))
		return
	}
	attrs = append(attrs, slog.String("state", state.Condition.String()), slog.Any("error", state.Cause))
	o.log.LogAttrs(context.Background(), slog.LevelError, "the store is unavailable: on_unavailable decides calls, and charges wait", attrs...)
	o.events.Record(api.EventOutage, fmt.Sprintf("The store is %s: the policy %s decides calls.", state.Condition, policy))
}

// state returns the state of the store for /readyz; nil of one that is in this process.
func (o *outages) state() *admin.StoreState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.store == nil {
		return nil
	}
	state, cause := o.store.State(), ""
	if state.Cause != nil {
		cause = state.Cause.Error()
	}
	return &admin.StoreState{
		Type: string(o.kind), State: state.Condition.String(), Since: state.Since.UTC(),
		Policy: o.policy.String(), RulesWithAnother: o.own, Cause: cause,
	}
}

// register registers gauges of the state and of the policy: 1 for the present one, 0 for the others.
func (o *outages) register(reg prometheus.Registerer) error {
	var errs []error
	gauge := func(name, help, label, value string, is func(*admin.StoreState) string) {
		errs = append(errs, reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{label: value},
		}, func() float64 { return truth(is(o.state()) == value) })))
	}
	for _, c := range []dynamo.Condition{dynamo.Available, dynamo.Recovering, dynamo.Throttled, dynamo.Unavailable} {
		gauge("ratelimit_store_state", "1 for the state of the store.", "state", c.String(),
			func(s *admin.StoreState) string { return s.State })
	}
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Local} {
		gauge("ratelimit_store_policy", "1 for the policy that decides in an outage, unless a rule has another.", "policy", p.String(),
			func(s *admin.StoreState) string { return s.Policy })
	}
	return errors.Join(errs...)
}
