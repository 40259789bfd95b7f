package rls

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/ledger"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// reserved is the reservation of an admitted call.
type reserved struct {
	any    bool
	hits   uint64 // at most the hits that any of its descriptors reserved
	id     string // "" = there is none
	result string // for metrics; "" = nothing was reserved
}

// settlement is the result of one descriptor that settles.
type settlement struct {
	result   string
	done     bool
	adjusted []limiter.Consumption // the use beyond the reserved amounts; below 0 is refunded
}

// The results of a settlement beside the reasons of descriptor and reservation.
const (
	settledNow       = "settled"
	settledBefore    = "repeated"
	settledElsewhere = "wrong_namespace"
	settledOff       = "not_available" // the service makes no reservations
	settledFailed    = "failed"
)

// Results of calls that reserve.
const (
	reservationIssued  = "issued"
	reservationTooLong = "too_long" // its names are too long for an id
	reservationOff     = "not_available"
)

// estimator estimates for rules from earlier use.
type estimator struct{ used *reservation.Estimates }

// Estimate implements descriptor.Estimator.
func (e estimator) Estimate(namespace, entity, resource, limit string) (int64, bool) {
	return e.used.Estimate(reservation.Key{Namespace: namespace, Entity: entity, Resource: resource, Limit: limit})
}

func (s *Service) estimates() descriptor.Estimator { return estimator{s.used} }

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
		s.trouble(ctx, eventReservation, settledFailed, slog.Any("error", err))
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
		s.trouble(ctx, eventReservation, reservation.Reason(err), slog.Any("error", err))
		return reservation.Reason(err), nil
	}
	if r.Namespace != c.plan.Request.Namespace {
		s.trouble(ctx, eventReservation, settledElsewhere, slog.String("error", "a reservation of namespace "+r.Namespace+" in a call to "+c.plan.Request.Namespace))
		return settledElsewhere, nil
	}
	outcome, err := s.settler.Settle(ctx, now, ledger.Settlement{
		Mark:     limiter.Mark{Namespace: r.Namespace, ID: r.ID, Owner: rand.Text(), Expires: r.Expires},
		Holdings: r.Holdings, Used: used,
	})
	if err != nil {
		s.failed(ctx, err)
		return settledFailed, nil
	}
	if outcome == ledger.Settled || outcome == ledger.Kept {
		adjusted = s.observe(r.Holdings, used)
	}
	return settledAs(outcome), adjusted
}

func settledAs(outcome ledger.Outcome) string {
	switch outcome {
	case ledger.Settled:
		return settledNow
	case ledger.Kept:
		return bookingKept
	case ledger.Repeated:
		return settledBefore
	case ledger.Uncertain:
		return bookingUncertain
	case ledger.Lost:
		return bookingLost
	default:
		return settledFailed
	}
}

// observe adds the use of a reservation to the estimates. It returns the difference between the use
// and the reserved amounts.
func (s *Service) observe(holdings []limiter.Holding, used []limiter.Consumption) (adjusted []limiter.Consumption) {
	for i := range holdings {
		h := &holdings[i]
		if h.Level > 0 {
			continue
		}
		for _, t := range h.Taken {
			amount, known := int64(0), false
			for _, u := range used {
				if u.Limit == t.Limit {
					amount, known = amount+u.Amount, true
				}
			}
			if known {
				s.used.Observe(reservation.Key{Namespace: h.Bucket.Namespace, Entity: h.Bucket.Entity, Resource: h.Bucket.Resource, Limit: t.Limit}, amount)
				adjusted = append(adjusted, limiter.Consumption{Limit: t.Limit, Amount: amount - t.Amount})
			}
		}
	}
	return adjusted
}

// learn adds the use that refunds and charges of one call settle to the estimates.
func (s *Service) learn(c *call) {
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if !o.Settled || o.Kind != descriptor.Takes {
			continue
		}
		for _, t := range c.plan.Request.Takes[o.First : o.First+o.Count] {
			for _, u := range t.Consume {
				s.used.Observe(reservation.Key{Namespace: c.plan.Request.Namespace, Entity: t.Entity, Resource: t.Resource, Limit: u.Limit}, u.Amount)
			}
		}
	}
}

// appendReserved appends the reservation with its id.
func (c *call) appendReserved(b []byte) []byte {
	if !c.reserved.any {
		return b
	}
	b = appendNumber(b, "reserved", int64(min(c.reserved.hits, math.MaxInt64))) // #nosec G115 -- it fits
	if c.reserved.id != "" {
		b = appendID(b, c.reserved.id)
	}
	return b
}

// appendID appends the id unchanged, as a cut or escaped id could not be settled. No character of
// an id needs escaping.
func appendID(b []byte, id string) []byte {
	b, field, value := beginField(b, "reservation_id")
	b, mark := begin(b, valueString)
	b = append(b, id...)
	return end(end(end(b, mark), value), field)
}

// appendSettlements appends the result of each settlement.
func (c *call) appendSettlements(b []byte) []byte {
	if len(c.settlements) == 0 {
		return b
	}
	b, field, value := beginField(b, "settlements")
	b, list := begin(b, valueList)
	for i, s := range c.settlements {
		var item, object int
		b, item = begin(b, listValues)
		b, object = begin(b, valueStruct)
		b = appendText(b, "rule", c.plan.Outcomes[c.plan.Settlements[i].Descriptor].Rule.Name())
		b = appendText(b, "result", s.result)
		b = end(end(b, object), item)
	}
	return end(end(end(b, list), value), field)
}
