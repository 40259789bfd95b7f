package rls

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// reserve gives an admitted call the id by which its reservation is settled.
func (s *Service) reserve(ctx context.Context, now time.Time, c *call) {
	if len(c.plan.Reserves) == 0 {
		return
	}
	c.holdings = c.holdings[:0]
	hits := uint64(math.MaxUint64)
	for _, r := range c.plan.Reserves {
		c.holdings = c.decision.Holdings(c.holdings, &c.plan.Request, r.Take)
		hits = min(hits, r.Hits)
	}
	if len(c.holdings) == 0 { // all takes are unlimited
		return
	}
	c.reserved = reserved{any: true, hits: hits, result: reservationOff}
	if c.options.Keyring == nil || s.settler == nil {
		return
	}
	id, err := c.options.Keyring.Seal(rand.Reader, reservation.Reservation{
		Namespace: c.plan.Request.Namespace, Expires: now.Add(c.options.Lifetime).Truncate(time.Millisecond), Holdings: c.holdings,
	})
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
