package rls

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// reserve gives an admitted call the id that settles its reservation and ends its requests in flight.
func (s *Service) reserve(ctx context.Context, now time.Time, c *call) {
	c.reserved.hits = math.MaxUint64
	held := len(c.holdings) // of shadows
	for _, r := range c.plan.Reserves {
		c.holdings = c.decision.Holdings(c.holdings, &c.plan.Request, r.Take)
		c.reserved.hits = min(c.reserved.hits, r.Hits)
	}
	c.reserved.amounts = len(c.holdings) > held
	decided := &c.plan.Request
	if c.plan.Answers || c.plan.Quota { // in parts, of which the last one takes
		decided = &c.part.request
	}
	c.holdings = c.decision.InFlight(c.holdings, decided)
	if len(c.holdings) == 0 { // all takes are unlimited
		return
	}
	c.reserved.any, c.reserved.result = true, reservationOff
	if c.options.Keyring == nil || s.settler == nil {
		return
	}
	of := reservation.Reservation{Namespace: c.plan.Request.Namespace, Expires: now.Add(c.lifetime()).Truncate(time.Millisecond), Holdings: c.holdings}
	id, err := c.options.Keyring.Seal(rand.Reader, of)
	if errors.Is(err, reservation.ErrTooLong) && held > 0 {
		of.Holdings = c.holdings[held:]
		id, err = c.options.Keyring.Seal(rand.Reader, of)
	}
	switch {
	case err == nil:
		c.reserved.id, c.reserved.result = id, reservationIssued
	case errors.Is(err, reservation.ErrTooLong):
		c.reserved.result = reservationTooLong
	default:
		c.reserved.result = settledFailed
		s.log.trouble(ctx, eventReservation, settledFailed, slog.Any("error", err))
	}
}

// lifetime is how long the reservation can be settled: as long as any of its requests may be in flight.
func (c *call) lifetime() time.Duration {
	lifetime := max(c.options.Lifetime, c.ttl)
	for i := range c.holdings {
		if w := c.holdings[i].Bucket.Window; w.InFlight() {
			lifetime = max(lifetime, w.MaxTime())
		}
	}
	return lifetime
}

// settle settles the reservations that the call's descriptors name, before any take. Descriptors
// with the same id settle together. It denies no request: the metadata of the answer has the
// results.
func (s *Service) settle(ctx context.Context, now time.Time, c *call) {
	all := c.plan.Settlements
	for range all {
		c.settlements = append(c.settlements, settlement{})
	}
	for i := range all {
		if c.settlements[i].done {
			continue
		}
		var used []limiter.Consumption
		why := ""
		for j := i; j < len(all); j++ {
			if all[j].ID == all[i].ID {
				used = append(used, all[j].Used...)
				if all[j].Why != "" {
					why = all[j].Why
				}
			}
		}
		var adjusted []limiter.Consumption
		if why == "" {
			why, adjusted = s.settleOne(ctx, now, c, all[i].ID, used)
		}
		for j := i; j < len(all); j++ {
			if all[j].ID == all[i].ID {
				c.settlements[j] = settlement{result: why, done: true}
			}
		}
		c.settlements[i].adjusted = adjusted
	}
}

// settleOne settles one reservation. It returns the result, and the difference between the use and
// the reserved amounts.
func (s *Service) settleOne(ctx context.Context, now time.Time, c *call, id string, used []limiter.Consumption) (result string, adjusted []limiter.Consumption) {
	if c.options.Keyring == nil || s.settler == nil {
		return settledOff, nil
	}
	r, err := c.options.Keyring.Open(id, now)
	if err != nil {
		s.log.trouble(ctx, eventReservation, reservation.Reason(err), slog.Any("error", err))
		return reservation.Reason(err), nil
	}
	if r.Namespace != c.plan.Request.Namespace {
		s.log.trouble(ctx, eventReservation, settledElsewhere, slog.String("error", "a reservation of namespace "+r.Namespace+" in a call to "+c.plan.Request.Namespace))
		return settledElsewhere, nil
	}
	if c.commits != "" {
		used = usedOf(r.Holdings, c.in.Hits)
	}
	outcome, err := s.settler.Settle(ctx, now, reservation.Settlement{
		Mark:     limiter.Mark{Namespace: r.Namespace, ID: r.ID, Owner: rand.Text(), Expires: r.Expires},
		Holdings: r.Holdings, Used: used,
	})
	if err != nil {
		s.log.failed(ctx, err)
		return settledFailed, nil
	}
	if outcome == reservation.Settled || outcome == reservation.Kept {
		adjusted = s.used.observe(r.Holdings, used)
	}
	return settledAs(outcome), adjusted
}

// usedOf returns the same use of all limits that a reservation holds.
func usedOf(holdings []limiter.Holding, hits uint64) (used []limiter.Consumption) {
	amount := int64(min(hits, tokenbucket.MaxAmount/limiter.Milli)) * limiter.Milli // #nosec G115 -- it is bounded
	for i := range holdings {
		for _, t := range holdings[i].Taken {
			if !slices.ContainsFunc(used, func(u limiter.Consumption) bool { return u.Limit == t.Limit }) {
				used = append(used, limiter.Consumption{Limit: t.Limit, Amount: amount})
			}
		}
	}
	return used
}
