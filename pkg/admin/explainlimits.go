package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// never is the time to wait for a request that never passes.
const never = "never"

// balances are the limits that a request takes from, as they stand.
type balances struct {
	takes    []limiter.Take
	space    string // the namespace
	decision limiter.Decision
	needs    map[bucketLimit]need // of all takes
	first    bool                 // charges and refunds are booked before takes are decided
	answers  func(take int) bool  // a charge denies when it is more than the tokens left
	policy   limiter.Policy       // that would answer if the store did not
	shards   map[bucketLimit]*Shards
	now      time.Time
}

// look reads the balances of the limits that a request takes from.
// chargesFirst says that charges and refunds are booked before takes are decided; else all of
// them are decided together.
func (e *Explainer) look(ctx context.Context, planned *limiter.Request, answers func(take int) bool, chargesFirst bool) (*balances, error) {
	b := &balances{takes: planned.Takes, space: cmp.Or(planned.Namespace, limiter.DefaultNamespace), needs: make(map[bucketLimit]need), answers: answers, first: chargesFirst, now: e.Now()}
	req := peeks(planned)
	if err := e.Decider.Decide(ctx, b.now, req, &b.decision); err != nil {
		return nil, fmt.Errorf("reading the balances: %w", err)
	}
	if p, ok := e.Decider.(interface {
		OnUnavailable(req *limiter.Request, d *limiter.Decision) limiter.Policy
	}); ok && b.decision.Reason != limiter.ReasonDisabled { // which no policy admits
		b.policy = p.OnUnavailable(req, &b.decision)
	}
	for i := range b.decision.Statuses {
		s := &b.decision.Statuses[i]
		t := &b.takes[s.Take]
		at := bucketLimitOf(t, s)
		n := b.needs[at]
		n.add(t.Mode, amountOf(t, s.Limit.Name))
		b.needs[at] = n
	}
	if b.decision.Policy != limiter.Unset { // the store does not answer: it knows of no shard
		return b, nil
	}
	if err := b.addShards(ctx, e.Shards); err != nil {
		return nil, fmt.Errorf("finding the shards: %w", err)
	}
	return b, nil
}

// refusal is the reason of a denial that no balance changes; "" = there is none.
func (b *balances) refusal() string {
	d := &b.decision
	if d.Reason == limiter.ReasonNone || d.Reason == limiter.ReasonExhausted {
		return ""
	}
	if d.Reason == limiter.ReasonNotConfigured {
		return d.Reason.String() + ": " + d.MissingLimit
	}
	if d.Reason == limiter.ReasonDisabled && b.takes[d.Disabled.Take].Mode != limiter.Consume {
		return "" // it is booked
	}
	if d.Reason == limiter.ReasonDisabled {
		why := d.Reason.String()
		if d.Disabled.State != limiter.NamespaceActive {
			why = d.Disabled.State.String()
		}
		return why + ": " + d.Disabled.Kind() + " " + printable(b.disabled())
	}
	return d.Reason.String()
}

// disabled is the name of the disabled subject.
func (b *balances) disabled() string {
	if subject := &b.decision.Disabled.Subject; subject.Kind != limiter.RefSystemLimits {
		return cmp.Or(subject.Entity, subject.Resource)
	}
	return b.space
}

// limit describes one limit, and whether it has enough for the takes.
func (b *balances) limit(s *limiter.LimitStatus) Limit {
	t := &b.takes[s.Take]
	amount := amountOf(t, s.Limit.Name)
	l := Limit{
		Entity: printable(s.Entity), Level: s.Level, Resource: printable(s.Resource),
		Name: s.Limit.Name, Rate: s.Limit.String(), Source: s.Source.String(),
		Amount: tokens(amount), Available: tokens(s.Available), Enough: true,
	}
	at := bucketLimitOf(t, s)
	n, balance := b.needs[at], int64(0)
	l.Shards = b.shards[at]
	switch {
	case t.Mode == limiter.Charge:
		l.Action = "charge"
		if b.answers(s.Take) {
			balance, l.Enough = n.debt(s)
		}
	case t.Mode == limiter.Refund:
		l.Action = "refund"
	case amount == 0:
		l.Action = "look"
		balance, l.Enough = n.missing(s, true, b.first)
	default:
		l.Action = "take"
		balance, l.Enough = n.missing(s, false, b.first)
	}
	if !l.Enough {
		l.RetryAfter = b.wait(s, balance)
	}
	return l
}

// wait is the time until a limit has so much, if no other takes from it.
func (b *balances) wait(s *limiter.LimitStatus, need int64) string {
	now := b.now.UnixMilli()
	bucket := tokenbucket.Bucket{Tokens: s.Available, Refilled: now}
	ms, ok := bucket.RetryAfter(s.Limit.Params(), need, now)
	if !ok {
		return never
	}
	return (time.Duration(min(ms, int64(maxWait/time.Millisecond))) * time.Millisecond).String()
}

// maxWait bounds a time to wait: a duration has 292 years.
const maxWait = 100 * 366 * 24 * time.Hour

// later returns the longer of two waits; "" is none.
func later(a, b string) string {
	if a == never || b == "" {
		return a
	}
	x, errA := time.ParseDuration(a)
	y, errB := time.ParseDuration(b)
	if errA == nil && errB == nil && x > y {
		return a
	}
	return b // also never
}

// peek adds the limits that a request takes from, with their balances, and whether they
// have enough. plans name the plans of the takes; answers says that a charge denies when
// it is more than the tokens left.
func (e *Explainer) peek(ctx context.Context, planned *limiter.Request, plans []string, answers bool, x *Explanation) error {
	if len(planned.Takes) == 0 {
		return nil
	}
	b, err := e.look(ctx, planned, func(int) bool { return answers }, answers)
	if err != nil {
		return err
	}
	x.Late, x.OnUnavailable = b.decision.Late, b.policy.String()
	if b.decision.Policy != limiter.Unset {
		x.Fallback = b.decision.Policy.String()
	}
	if why := b.refusal(); why != "" {
		x.Admitted, x.Why = planned.Takes[0].Mode != limiter.Consume, why // a charge denies no request
	}
	x.addLimits(b, 0, len(planned.Takes), plans)
	return nil
}

// addLimits adds the limits of takes, from the first up to before the last. plans name the
// plans of the takes.
func (x *Explanation) addLimits(b *balances, first, last int, plans []string) {
	for i := range b.decision.Statuses {
		s := &b.decision.Statuses[i]
		if s.Take < first || s.Take >= last {
			continue
		}
		l := b.limit(s)
		if s.Take-first < len(plans) && s.Level == 0 {
			l.Plan = plans[s.Take-first]
		}
		x.Limits = append(x.Limits, l)
		x.Admitted = x.Admitted && l.Enough
		x.RetryAfter = later(x.RetryAfter, l.RetryAfter)
	}
}

// peeks returns the request that asks the buckets of a request, and takes nothing.
func peeks(planned *limiter.Request) *limiter.Request {
	req := *planned
	req.Whole = true
	req.Takes = make([]limiter.Take, len(planned.Takes))
	for i, t := range planned.Takes {
		t.Mode = limiter.Consume
		consume := t.Consume
		t.Consume = make([]limiter.Consumption, len(consume))
		for j, c := range consume {
			t.Consume[j].Limit = c.Limit
		}
		req.Takes[i] = t
	}
	return &req
}

// bucketLimit identifies a limit of a bucket among the takes of one request.
type bucketLimit struct {
	entity, resource, limit string
	own                     uint64 // the hash of the take's own limits, which have buckets apart,
	of                      string // and what they belong to
}

func bucketLimitOf(t *limiter.Take, s *limiter.LimitStatus) bucketLimit {
	b := bucketLimit{entity: s.Entity, resource: s.Resource, limit: s.Limit.Name}
	if s.Level == 0 {
		b.own, b.of = t.Limits.Hash(), t.LimitsOf
	}
	return b
}

// amountOf returns how much a take asks of a limit, in millitokens.
func amountOf(t *limiter.Take, limit string) int64 {
	var amount int64
	for _, c := range t.Consume {
		if c.Limit == limit {
			amount = min(amount+c.Amount, tokenbucket.MaxAmount)
		}
	}
	return amount
}
