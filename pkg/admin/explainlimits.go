package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Waits that are no durations.
const (
	never       = "never"                   // the request is never admitted
	whenOneEnds = "when one in flight ends" // at an unknown time
)

// balances are the limits that a request takes from, with their present balances.
type balances struct {
	takes    []limiter.Take
	space    string // the namespace
	decision limiter.Decision
	needs    map[bucketLimit]need // of all takes
	first    bool                 // charges and refunds are booked before takes are decided
	answers  func(take int) bool  // it denies when the balance is below zero after it, and not for less
	policy   limiter.Policy       // for when the store is unavailable
	shards   map[bucketLimit]*Shards
	now      time.Time
}

// readBalances reads the balances of the limits that a request takes from. chargesFirst says that
// charges and refunds are booked before takes are decided; otherwise all of them are decided
// together.
func (e *Explainer) readBalances(ctx context.Context, planned *limiter.Request, answers func(take int) bool, chargesFirst bool) (*balances, error) {
	b := &balances{takes: planned.Takes, space: cmp.Or(planned.Namespace, limiter.DefaultNamespace), needs: make(map[bucketLimit]need), answers: answers, first: chargesFirst, now: e.Now()}
	req := peeks(planned)
	if err := e.Decider.Decide(ctx, b.now, req, &b.decision); err != nil {
		return nil, fmt.Errorf("reading the balances: %w", err)
	}
	if p, ok := e.Decider.(interface {
		OnUnavailable(req *limiter.Request, d *limiter.Decision) limiter.Policy
	}); ok && b.decision.Reason != limiter.ReasonDisabled { // no policy admits a disabled one
		b.policy = p.OnUnavailable(req, &b.decision)
	}
	for i := range b.decision.Statuses {
		s := &b.decision.Statuses[i]
		t := &b.takes[s.Take]
		at := b.bucketLimit(s)
		n := b.needs[at]
		n.add(t.Mode, amountOf(t, s.Limit))
		b.needs[at] = n
	}
	if b.decision.Policy != limiter.Unset { // the store is unavailable, and returns no shards
		return b, nil
	}
	if err := b.addShards(ctx, e.Shards); err != nil {
		return nil, fmt.Errorf("finding the shards: %w", err)
	}
	return b, nil
}

// refusal is the reason of a denial that does not depend on balances; "" = there is none.
func (b *balances) refusal() string {
	d := &b.decision
	if d.Reason == limiter.ReasonNone || d.Reason == limiter.ReasonExhausted {
		return ""
	}
	if d.Reason == limiter.ReasonNotConfigured {
		return d.Reason.String() + ": " + d.MissingLimit
	}
	if d.Reason == limiter.ReasonDisabled && b.takes[d.Disabled.Take].Mode != limiter.Consume {
		return "" // it is booked all the same
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

// disabled returns the name of the disabled subject.
func (b *balances) disabled() string {
	if subject := &b.decision.Disabled.Subject; subject.Kind != limiter.RefSystemLimits {
		return cmp.Or(subject.Entity, subject.Resource)
	}
	return b.space
}

// limit describes one limit, and whether it has enough for the takes.
func (b *balances) limit(s *limiter.LimitStatus) Limit {
	t := &b.takes[s.Take]
	amount := amountOf(t, s.Limit)
	l := Limit{
		Entity: printable(s.Entity), Level: s.Level, Resource: printable(s.Resource),
		Name: s.Limit.Name, Rate: s.Limit.String(), Source: s.Source.String(),
		Amount: tokens(amount), Available: tokens(s.Available), Enough: true,
	}
	at := b.bucketLimit(s)
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
		if b.answers(s.Take) {
			balance, l.Enough = n.debt(s)
		} else {
			balance, l.Enough = n.missing(s, true, b.first)
		}
	default:
		l.Action = "take"
		balance, l.Enough = n.missing(s, false, b.first)
	}
	if !l.Enough {
		l.RetryAfter = b.wait(s, balance)
	}
	return l
}

// wait is the time until a limit has enough, if no other request takes from it.
func (b *balances) wait(s *limiter.LimitStatus, need int64) string {
	now := b.now.UnixMilli()
	if s.Limit.IsInFlight() && need <= s.Limit.Capacity*limiter.Milli {
		return whenOneEnds
	}
	if s.Limit.IsQuota() && need <= s.Limit.Capacity*limiter.Milli {
		return s.Reset.String()
	}
	bucket := tokenbucket.Bucket{Tokens: s.Available, Refilled: now}
	ms, ok := bucket.RetryAfter(s.Limit.Params(), need, now)
	if !ok {
		return never
	}
	return (time.Duration(min(ms, int64(maxWait/time.Millisecond))) * time.Millisecond).String()
}

// maxWait bounds a wait, as a duration ends at 292 years.
const maxWait = 100 * 366 * 24 * time.Hour

// later returns the longer of two waits; "" is none. An unknown one is longer than a time.
func later(a, b string) string {
	switch {
	case a == never || b == never:
		return never
	case a == "" || b == "":
		return a + b
	case a == whenOneEnds || b == whenOneEnds:
		return whenOneEnds
	}
	x, errA := time.ParseDuration(a)
	y, errB := time.ParseDuration(b)
	if errA == nil && errB == nil && x > y {
		return a
	}
	return b
}

// peek adds the limits that a request takes from, with their balances, and whether these suffice.
// plans name the plans of the takes. answers says that a charge denies when it is more than the
// tokens left.
func (e *Explainer) peek(ctx context.Context, planned *limiter.Request, plans []string, answers bool, x *Explanation) error {
	if len(planned.Takes) == 0 {
		return nil
	}
	b, err := e.readBalances(ctx, planned, func(int) bool { return answers }, answers)
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
	return e.tried(ctx, planned, b, x)
}

// tried adds the decision that limits which are tried would make, where b has some.
func (e *Explainer) tried(ctx context.Context, planned *limiter.Request, b *balances, x *Explanation) error {
	if !b.decision.Tries() {
		return nil
	}
	var req limiter.Request
	planned.TriedIn(&req)
	of := Explanation{Admitted: true}
	if err := e.peek(ctx, &req, nil, false, &of); err != nil || len(of.Limits) == 0 && of.Why == "" {
		return err
	}
	for i := range of.Limits {
		of.Limits[i].Name = limiter.ShadowName(of.Limits[i].Name)
	}
	x.Shadows = append(x.Shadows, Shadow{WouldDeny: !of.Admitted, Why: of.Why, Limits: of.Limits})
	return nil
}

// addLimits adds the limits of takes from index first up to, but without, last. plans name the
// plans of these takes.
func (x *Explanation) addLimits(b *balances, first, last int, plans []string) {
	for i := range b.decision.Statuses {
		s := &b.decision.Statuses[i]
		if s.Take < first || s.Take >= last {
			continue
		}
		l := b.limit(s)
		if s.Take-first < len(plans) && s.Source == limiter.SourcePlan {
			l.Plan = cmp.Or(s.Plan, plans[s.Take-first])
		}
		x.Limits = append(x.Limits, l)
		x.Admitted = x.Admitted && l.Enough
		x.RetryAfter = later(x.RetryAfter, l.RetryAfter)
	}
}

// peeks returns a request for the same buckets that takes nothing.
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
	bucket limiter.BucketKey
	limit  string
}

// bucketLimit returns the limit of a bucket that a status is about.
func (b *balances) bucketLimit(s *limiter.LimitStatus) bucketLimit {
	bucket, _ := b.decision.BucketOf(s)
	return bucketLimit{bucket, s.Limit.Name}
}

// amountOf returns how much of a limit a take asks for, in millitokens. Of a quota that is a budget it is the
// amount of that limit.
func amountOf(t *limiter.Take, l *limiter.Limit) int64 {
	name, amount := l.Name, int64(0)
	if of := l.BudgetOf(); of != "" && !slices.ContainsFunc(t.Consume, func(c limiter.Consumption) bool { return c.Limit == name }) {
		name = of
	}
	for _, c := range t.Consume {
		if c.Limit == name {
			amount = min(amount+c.Amount, tokenbucket.MaxAmount)
		}
	}
	return amount
}
