package controlapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// verb is a change of balances.
type verb struct {
	name, summary string
	kind          limiter.AdjustKind
}

// verbs are the changes of balances, by their kinds.
func verbs() []verb {
	return []verb{
		limiter.AdjustReset:   {"reset", "Fill a bucket, as if it had never been used", limiter.AdjustReset},
		limiter.AdjustSet:     {"set", "Set the balance of a bucket", limiter.AdjustSet},
		limiter.AdjustTopUp:   {"top-up", "Give tokens to a bucket, up to its capacity", limiter.AdjustTopUp},
		limiter.AdjustTakeOut: {"take-out", "Take tokens out of a bucket, into debt if need be", limiter.AdjustTakeOut},
	}
}

func (a balances) adjust(c *call, kind limiter.AdjustKind) (any, error) {
	if a.buckets == nil {
		return nil, errNoBuckets()
	}
	var body api.BucketChange
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	adjustment := limiter.Adjustment{Limit: body.Limit, Kind: kind, Once: body.Once}
	w := wanted{entity: body.Entity, resource: body.Resource, limit: body.Limit, variant: body.Variant}
	var err error
	if adjustment.Bucket, err = w.key(c.namespace()); err == nil {
		err = amount(&adjustment, body.Tokens)
	}
	if err == nil {
		adjustment.DryRun, err = c.flag("dryRun")
	}
	if err != nil {
		return nil, err
	}
	now := a.now()
	if w.variant == "" {
		found, err := a.meant(c, now, &w)
		if err != nil {
			return nil, err
		}
		if found != nil { // the ordinary one may be newer than the list
			adjustment.Bucket = found.Key
		}
	}
	done, err := a.buckets.AdjustBucket(c.ctx(), now, adjustment)
	switch {
	case err != nil:
		return nil, err
	case done.Repeated:
		return repeatedOf(c, &adjustment, &done)
	case !done.Found && kind == limiter.AdjustTopUp:
		return nil, nothingBooked(a.none(c, &w))
	case !done.Found:
		return nil, a.none(c, &w)
	}
	return adjustedOf(c, &adjustment, &done)
}

// nothingBooked adds to the refusal of a top-up that no tokens were booked.
func nothingBooked(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		p.Detail += "; nothing was booked"
	}
	return err
}

// amount sets the amount of an adjustment.
func amount(a *limiter.Adjustment, tokens *api.Tokens) error {
	switch {
	case a.Kind == limiter.AdjustReset && tokens != nil:
		return invalid("a reset takes no amount: leave the member tokens out")
	case a.Kind == limiter.AdjustReset:
		return nil
	case tokens == nil:
		return invalid("the member tokens is missing: it says how many")
	}
	a.Tokens = int64(*tokens)
	return nil
}

// adjustedOf returns the outcome of an adjustment of a bucket as JSON.
func adjustedOf(c *call, a *limiter.Adjustment, done *limiter.Adjusted) (any, error) {
	if a.Full(done.Booked) {
		return nil, errFull(a, done)
	}
	out := api.Adjusted{Change: api.Change[api.Bucket]{
		Result: api.Changed, DryRun: a.DryRun, InMemory: !c.durable, Before: bucketOf(&done.Before), After: bucketOf(&done.After),
	}}
	if sameBalances(done.Before.Limits, done.After.Limits) {
		out.Result = api.Unchanged
	}
	out.Booked = bookingsOf(a, done.Booked)
	return out, nil
}

// repeatedOf returns an adjustment that repeats an earlier one as JSON. It refuses a repetition for
// another bucket.
func repeatedOf(c *call, a *limiter.Adjustment, done *limiter.Adjusted) (any, error) {
	if done.First != nil && done.First.Elsewhere {
		return nil, problem(http.StatusConflict, api.Reused, fmt.Sprintf("the text %.100q was used in the last day for a %s of another bucket: nothing was changed; give another text", a.Once, verbs()[done.First.Kind].name))
	}
	out := api.Adjusted{Change: api.Change[api.Bucket]{Result: api.Repeated, DryRun: a.DryRun, InMemory: !c.durable}, First: firstOf(done.First)}
	if done.Found {
		out.Before, out.After = bucketOf(&done.Before), bucketOf(&done.After)
	}
	return out, nil
}

// errFull refuses a top-up for which the bucket has no room.
func errFull(a *limiter.Adjustment, done *limiter.Adjusted) error {
	var full []string
	for _, l := range done.Before.Limits {
		if !l.Limit.Unlimited && (a.Limit == "" || a.Limit == l.Limit.Name) {
			full = append(full, fmt.Sprintf("%s has %s of %d", l.Limit.Name, api.Tokens(l.Tokens), l.Limit.Capacity))
		}
	}
	text := fmt.Sprintf("0 of %s tokens fit: the bucket is full, %s; nothing was booked", api.Tokens(a.Tokens), strings.Join(full, ", "))
	if a.Once != "" {
		text += fmt.Sprintf(", and the text %.100q can be used later", a.Once)
	}
	return problem(http.StatusConflict, api.Full, text)
}

func bookingsOf(a *limiter.Adjustment, booked []limiter.Booking) []api.Booking {
	out := make([]api.Booking, 0, len(booked))
	for _, b := range booked {
		out = append(out, api.Booking{Limit: b.Limit, Tokens: api.Tokens(b.Tokens), Cut: api.Tokens(a.Cut(b))})
	}
	return out
}

// firstOf returns the adjustment that another one repeats as JSON; nil = not known.
func firstOf(first *limiter.FirstAdjustment) *api.FirstChange {
	if first == nil {
		return nil
	}
	a := limiter.Adjustment{Kind: first.Kind, Tokens: first.Tokens}
	return &api.FirstChange{Verb: verbs()[first.Kind].name, Tokens: api.Tokens(first.Tokens), Booked: bookingsOf(&a, first.Booked)}
}

func sameBalances(a, b []limiter.LimitState) bool {
	for i := range a {
		if i >= len(b) || a[i].Tokens != b[i].Tokens {
			return false
		}
	}
	return len(a) == len(b)
}
