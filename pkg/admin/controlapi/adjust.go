package controlapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
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
		limiter.AdjustTopUp:   {"top-up", "Give tokens to a bucket; it is refused if not all of them fit, unless excess says otherwise", limiter.AdjustTopUp},
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
		adjustment.Excess, err = excess(&body, kind)
	}
	if err == nil {
		adjustment.DryRun, err = c.flag("dryRun")
	}
	if err != nil {
		return nil, err
	}
	now := c.now()
	if w.variant == "" {
		found, err := a.meant(c, now, &w)
		if err != nil {
			return nil, err
		}
		if found != nil { // the ordinary one may be newer than the list
			adjustment.Bucket = found.Key
		}
	}
	adjustment.Limits, _ = a.inForce(c, now, adjustment.Bucket) // those of the bucket where they cannot be read
	done, err := a.buckets.AdjustBucket(c.ctx(), now, adjustment)
	switch {
	case err != nil:
		return nil, err
	case done.Repeated:
		return repeatedOf(c, &adjustment, &done)
	case !done.Found && kind == limiter.AdjustTopUp:
		return nil, nothingBooked(a.none(c, &w), adjustment.Excess)
	case !done.Found:
		return nil, a.none(c, &w)
	}
	underLimits(now, adjustment.Limits, &done.Before)
	underLimits(now, adjustment.Limits, &done.After)
	return adjustedOf(c, &adjustment, &done)
}

// nothingBooked adds to the refusal of a top-up that no tokens were booked. Above the capacity they need a bucket in use.
func nothingBooked(err error, excess limiter.Excess) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		p.Detail += "; nothing was booked"
		if excess == limiter.ExcessKept {
			p.Detail += ": make it again after a request that took tokens"
		}
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
func adjustedOf(c *call, a *limiter.Adjustment, done *limiter.Adjusted) (*api.Adjusted, error) {
	if a.Unfit(done.Booked) {
		return nil, errUnfit(a, done)
	}
	out := &api.Adjusted{Change: api.Change[api.Bucket]{
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

// excess reads the treatment of the excess of a top-up.
func excess(body *api.BucketChange, kind limiter.AdjustKind) (limiter.Excess, error) {
	switch {
	case body.Excess == "":
		return limiter.ExcessRefused, nil
	case kind != limiter.AdjustTopUp:
		return 0, invalid("the member excess is of a top-up: leave it out")
	case body.Excess == api.UpToCapacity:
		return limiter.ExcessCut, nil
	case body.Excess == api.Beyond:
		return limiter.ExcessKept, nil
	default:
		return 0, invalid("the member excess is %.100q; it must be %q or %q", string(body.Excess), string(api.UpToCapacity), string(api.Beyond))
	}
}

// errUnfit refuses a top-up that does not fit.
func errUnfit(a *limiter.Adjustment, done *limiter.Adjusted) error {
	booked := bookingsOf(a, done.Booked)
	texts := make([]string, 0, len(booked))
	ways := fmt.Sprintf("with %q the member excess books all, above the capacity", string(api.Beyond))
	for i, b := range booked {
		of := done.Before.Limits[slices.IndexFunc(done.Before.Limits, func(l limiter.LimitState) bool { return l.Limit.Name == b.Limit })]
		text := func(n api.Tokens) string { return money.Amounts(b.Limit, n.String()) }
		texts = append(texts, fmt.Sprintf("%s of %s fit, limit %s has %s of %s", text(b.Tokens), money.Counted(b.Limit, (b.Tokens+booked[i].Cut).String()),
			b.Limit, text(api.Tokens(of.Tokens)), money.Amount(b.Limit, of.Limit.Capacity)))
		if b.Tokens > 0 && a.Excess == limiter.ExcessRefused {
			ways = fmt.Sprintf("with %q the member excess books what fits, with %q all, above the capacity", string(api.UpToCapacity), string(api.Beyond))
		}
	}
	text := strings.Join(texts, "; ") + "; nothing was booked"
	if a.Once != "" {
		text += fmt.Sprintf(", and the text %.100q can be used later", a.Once)
	}
	p := problem(http.StatusConflict, api.Full, text+"; "+ways)
	p.Booked = booked
	return p
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
