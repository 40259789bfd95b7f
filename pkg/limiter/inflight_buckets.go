package limiter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PresentBuckets returns the buckets of a store as people mean them: a limit in flight has its own name and the balance of
// the present quarter, and an adjustment of it is made in the present quarter and in the next one. Other buckets are
// as in the store. The adjustment of both quarters has one audit event. Lists leave out the windows of limits in
// flight before and after the present one: pages may be shorter than asked for. It is nil for nil.
func PresentBuckets(of Buckets) Buckets {
	if of == nil {
		return nil
	}
	return presentBuckets{of}
}

type presentBuckets struct{ of Buckets }

func (p presentBuckets) ListBuckets(ctx context.Context, now time.Time, namespace string, f BucketFilter, page Page) (PageOf[BucketState], error) {
	list, err := p.of.ListBuckets(ctx, now, namespace, f, page)
	list.Items = slices.DeleteFunc(list.Items, func(b BucketState) bool {
		return b.Key.Window.InFlight() && !b.Key.Window.Has(now)
	})
	for i := range list.Items {
		list.Items[i].present(now)
	}
	return list, err
}

func (p presentBuckets) AdjustBucket(ctx context.Context, now time.Time, a Adjustment) (Adjusted, error) {
	if !a.Bucket.Window.InFlight() {
		return p.of.AdjustBucket(ctx, now, a)
	}
	a, err := p.named(ctx, now, a)
	if err != nil {
		return Adjusted{}, err
	}
	present, next := a.quarters(now)
	done, err := p.of.AdjustBucket(ctx, now, present)
	if err != nil {
		return done, err
	}
	if done.Repeated || done.Found && !a.Unfit(done.Booked) {
		if _, err := p.of.AdjustBucket(ctx, now, next); err != nil {
			return Adjusted{}, fmt.Errorf("%w: the present requests in flight are changed, and those of the next %v may not be: %w", ErrUncertain, a.Bucket.Window.MaxTime(), err)
		}
	}
	done.Before.present(now)
	done.After.present(now)
	done.Booked = a.Bucket.Window.present(now, done.Booked)
	if done.First != nil { // it may be of an earlier quarter
		first := *done.First
		first.Booked = slices.Clone(first.Booked[:min(len(first.Booked), 1)])
		for i := range first.Booked {
			first.Booked[i].Limit = a.Bucket.withoutQuarter(first.Booked[i].Limit)
		}
		done.First = &first
	}
	return done, nil
}

// Shown returns a limit of the bucket as people know it: slots, quarter 2 of 4, for slots.2 of a limit in flight.
func (k BucketKey) Shown(limit string) string {
	i := strings.LastIndex(limit, quarterDot)
	if !k.Window.InFlight() || i < 0 {
		return limit
	}
	return fmt.Sprintf("%s, quarter %s of %d", limit[:i], limit[i+1:], quarters)
}

// withoutQuarter returns a limit of the bucket by the name of the limit in flight that it is a quarter of.
func (k BucketKey) withoutQuarter(limit string) string {
	if i := strings.LastIndex(limit, quarterDot); i > 0 && k.Window.InFlight() {
		return limit[:i]
	}
	return limit
}

// named has an adjustment name the limit of its bucket, unless it is a reset of all.
func (p presentBuckets) named(ctx context.Context, now time.Time, a Adjustment) (Adjustment, error) {
	if a.Limit != "" || a.Kind == AdjustReset {
		return a, nil
	}
	seen, err := p.of.AdjustBucket(ctx, now, Adjustment{Bucket: a.Bucket, Kind: AdjustReset, DryRun: true})
	if err != nil || !seen.Found {
		return a, err
	}
	seen.Before.present(now)
	if len(seen.Before.Limits) == 1 {
		a.Limit = seen.Before.Limits[0].Limit.Name
	}
	return a, nil
}

// quarters returns the adjustments of the present quarter and of the next one. A reset without a limit is of all
// quarters of both windows.
func (a Adjustment) quarters(now time.Time) (present, next Adjustment) {
	a.Limits = a.Limits.inBucket()
	next = a
	next.Follows = true
	if a.Once != "" { // one of its own, of bounded length
		next.Once = fmt.Sprintf("next quarter %x", sha256.Sum256([]byte(a.Once)))
	}
	quarter := a.Bucket.Window.quarter(now)
	if a.Limit == "" || quarter == quarters-1 {
		next.Bucket.Window = a.Bucket.Window.next()
	}
	if a.Limit != "" {
		next.Limit = Limit{Name: a.Limit}.ofQuarter((quarter + 1) % quarters).Name
		a.Limit = Limit{Name: a.Limit}.ofQuarter(quarter).Name
	}
	return a, next
}

// inBucket returns the limits that a bucket has for limits. The set is valid.
func (s *Limits) inBucket() *Limits {
	all := make([]Limit, 0, s.Len())
	for i := range s.Len() {
		all = append(all, s.At(i).inBucket()...)
	}
	limits, err := NewLimits(all...)
	if err != nil { // impossible: each window is of one limit in flight
		return nil
	}
	return limits
}

// present has a bucket of requests in flight have the limit of the present quarter alone, by the name of the limit in
// flight.
func (b *BucketState) present(now time.Time) {
	if !b.Key.Window.InFlight() {
		return
	}
	var limits []LimitState
	for _, l := range b.Limits {
		if name, found := strings.CutSuffix(l.Limit.Name, b.Key.Window.suffix(now)); found {
			l.Limit.Name = name
			limits = append(limits, l)
		}
	}
	b.Limits = limits
}

// present returns the bookings of the present quarter, by the name of the limit in flight.
func (w Window) present(now time.Time, all []Booking) (of []Booking) {
	for _, b := range all {
		if name, found := strings.CutSuffix(b.Limit, w.suffix(now)); found {
			of = append(of, Booking{name, b.Tokens})
		}
	}
	return of
}

// suffix is the end of the names of limits of the present quarter.
func (w Window) suffix(now time.Time) string {
	return quarterDot + strconv.Itoa(w.quarter(now)+1)
}
