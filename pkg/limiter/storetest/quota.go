package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// quotas are takes from quotas, with a sum of their own for each window.
type quotas struct {
	decider

	r      *rand.Rand
	now    time.Time
	number map[string]int64 // tokens of each limit now
	taken  map[string]int64 // millitokens, by entity, limit and begin of the window
	denied int
}

// quotaStart is two days before a day of 23 hours. It is after the clock of the machine, by which stores forget
// windows.
func quotaStart() time.Time { return time.Date(2037, 3, 27, 10, 0, 0, 0, time.UTC) }

// checkQuotas: of each window of a quota at most the quota is taken, and all of it can be. A refund or a
// charge for a take counts in the window of the take, also when that is over. Use counts in full when the
// quota changes.
func checkQuotas(t T, s limiter.Store) {
	q := quotas{decider: newDecider(t, s, time.Minute), r: seeded(23, 3), now: quotaStart(), taken: map[string]int64{}}
	q.change(7, 30, 90)
	for range 400 {
		if q.r.IntN(10) == 0 {
			q.change(5+q.r.Int64N(6), 20+q.r.Int64N(20), 70+q.r.Int64N(40))
		}
		q.step()
		if t.Failed() {
			return
		}
	}
	if q.denied < 40 {
		t.Errorf("%d of 400 calls were denied: the check asks for too little", q.denied)
	}
}

// change changes the quotas. Days are those of Berlin, and months begin on the 31st.
func (q *quotas) change(hour, day, month int64) {
	q.number = map[string]int64{"hour": hour, "day": day, "month": month}
	q.setStatic(limiter.Static{
		System: q.limits(
			limiter.Quota("rate.hour", hour, limiter.Calendar{Unit: limiter.CalendarHour}),
			limiter.Quota("day", day, limiter.Calendar{Unit: limiter.CalendarDay, Zone: "Europe/Berlin"}).WithMaxDebt(limiter.NoDebt),
			limiter.Quota("month", month, limiter.Calendar{Unit: limiter.CalendarMonth, Anchor: 31}),
			limiter.PerSecond("rate", 1000),
		),
	})
}

// step takes from an entity, and sometimes books the take a while later.
func (q *quotas) step() {
	q.now = q.now.Add(time.Duration(q.r.Int64N(int64(90 * time.Minute))))
	entity := fmt.Sprint("e", q.r.IntN(2))
	amount := (1 + q.r.Int64N(4)) * limiter.Milli
	req := &limiter.Request{OnUnavailable: limiter.Deny, Takes: []limiter.Take{{Entity: entity, Resource: "r", Consume: []limiter.Consumption{
		{Limit: "day", Amount: amount}, {Limit: "month", Amount: amount}, {Limit: "rate", Amount: amount}, // and so rate.hour, its budget
	}}}}
	at := q.now.Truncate(time.Millisecond)
	if q.r.IntN(5) == 0 { // a replica whose clock is behind
		at = at.Add(-time.Duration(q.r.IntN(120)) * time.Second)
	}
	var d limiter.Decision
	if err := q.limiter.Decide(q.Context(), at, req, &d); err != nil {
		q.Fatalf("Decide: %v", err)
	}
	wait, enough := q.wait(entity, at, amount)
	if d.Admitted != enough {
		q.Errorf("%d at %v of %s: admitted %t, want %t", amount, at, entity, d.Admitted, enough)
		return
	}
	if !enough {
		q.denied++
		if d.RetryAfter != wait {
			q.Errorf("%d at %v of %s: retry after %v, want %v", amount, at, entity, d.RetryAfter, wait)
		}
		return
	}
	for _, w := range quotaWindows(at) {
		q.taken[w.key(entity)] += amount
	}
	if q.r.IntN(3) == 0 {
		q.settle(&d, req, entity, at, amount)
	}
}

// settle books half of a take back, or as much more, up to some days later.
func (q *quotas) settle(d *limiter.Decision, req *limiter.Request, entity string, at time.Time, amount int64) {
	later := at.Add(time.Duration(q.r.Int64N(int64(3 * time.Hour))))
	more := q.r.IntN(2) == 0
	for _, h := range d.Holdings(nil, req, 0) {
		op := limiter.Op{Bucket: h.Bucket, Limits: h.Limits, Generation: h.Generation, Shard: h.Shard}
		for _, c := range h.Taken {
			sp := limiter.Spend{Limit: c.Limit, Refund: c.Amount / 2}
			if more {
				sp = limiter.Spend{Limit: c.Limit, Charge: c.Amount / 2}
			}
			op.Spends = append(op.Spends, sp)
		}
		ctx, cancel := context.WithTimeout(q.Context(), reach)
		_, err := q.store.Take(ctx, later, []limiter.Op{op})
		cancel()
		if err != nil {
			q.Fatalf("Take: %v", err)
		}
	}
	for _, w := range quotaWindows(at) {
		key, change := w.key(entity), -amount/2
		if more {
			change = amount / 2
		}
		if more && w.limit == "day" { // without debt
			change = min(change, max(tokens(q.number[w.limit])-q.taken[key], 0))
		}
		q.taken[key] += change
	}
}

// wait returns the longest time until the quotas have an amount, and whether they have it now.
func (q *quotas) wait(entity string, at time.Time, amount int64) (wait time.Duration, enough bool) {
	for _, w := range quotaWindows(at) {
		if q.taken[w.key(entity)]+amount > tokens(q.number[w.limit]) {
			wait = max(wait, w.end.Sub(at))
		}
	}
	return wait, wait == 0
}

type quotaWindow struct {
	limit      string
	start, end time.Time
}

func (w quotaWindow) key(entity string) string { return fmt.Sprint(entity, w.limit, w.start.Unix()) }

// quotaWindows returns the windows at a time. They are written out here, and not those of the limiter.
func quotaWindows(at time.Time) []quotaWindow {
	hour := at.Truncate(time.Hour)
	const summer = 2121901200 // 2037-03-29 01:00 UTC
	offset := func(unix int64) int64 {
		if unix < summer {
			return 3600
		}
		return 7200
	}
	day := (at.Unix() + offset(at.Unix())) / 86400
	midnight := func(day int64) time.Time {
		unix := day * 86400
		if unix-3600 < summer {
			return time.Unix(unix-3600, 0)
		}
		return time.Unix(unix-7200, 0)
	}
	var months [5]time.Time
	for i, date := range [...][2]int{{2, 28}, {3, 31}, {4, 30}, {5, 31}, {6, 30}} { // of 2037
		months[i] = time.Date(2037, time.Month(date[0]), date[1], 0, 0, 0, 0, time.UTC)
	}
	i := 0
	for !at.Before(months[i+1]) {
		i++
	}
	return []quotaWindow{
		{"hour", hour, hour.Add(time.Hour)},
		{"day", midnight(day), midnight(day + 1)},
		{"month", months[i], months[i+1]},
	}
}
