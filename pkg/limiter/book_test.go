package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// family has a key below an organisation. Both have limits, and requests by another limit too.
func family(t *testing.T) limiter.Static {
	t.Helper()
	limits := map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.PerHour("tph", 1000), limiter.PerHour("rph", 100))}
	return limiter.Static{Entities: map[string]limiter.StaticEntity{
		"key": {Parent: "org", Cascade: true, Limits: limits}, "org": {Limits: limits},
		"free": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.Unlimited("tph"))}},
	}}
}

func mark() limiter.Mark {
	return limiter.Mark{Namespace: limiter.DefaultNamespace, ID: "x", Owner: "me", Expires: t0.Add(10 * time.Minute)}
}

// reserve takes the amounts of req, and returns the holdings of all its takes.
func reserve(t *testing.T, l *limiter.Limiter, req *limiter.Request) []limiter.Holding {
	t.Helper()
	d := decide(t, l, t0, req)
	if !d.Admitted {
		t.Fatalf("denied: %v", brief(d))
	}
	var holdings []limiter.Holding
	for i := range req.Takes {
		holdings = d.Holdings(holdings, req, i)
	}
	return holdings
}

func used(limit string, tokens int64) limiter.Consumption {
	return limiter.Consumption{Limit: limit, Amount: tokens * limiter.Milli}
}

// settled settles at another limiter of the same store, as another replica would.
func settled(t *testing.T, l *limiter.Limiter, m limiter.Mark, holdings []limiter.Holding, amounts ...limiter.Consumption) bool {
	t.Helper()
	won, err := l.Settle(t.Context(), t0, m, holdings, amounts)
	if err != nil {
		t.Fatal(err)
	}
	return won
}

// left returns the whole tokens of tph of entities.
func left(t *testing.T, l *limiter.Limiter, entities ...string) []int64 {
	t.Helper()
	out := make([]int64, 0, len(entities))
	for _, e := range entities {
		refund := take(e, "m", "tph", 0) // of 0: shows the balance
		refund.Takes[0].Mode = limiter.Refund
		d := decide(t, l, t0, refund)
		out = append(out, d.Statuses[0].Available/limiter.Milli)
	}
	return out
}

// A settlement corrects the entity and its ancestors to the actual use, from any process, and
// changes nothing else.
func TestSettle(t *testing.T) {
	two := func(first, second string, n int) *limiter.Request {
		req := take(first, "m", "tph", n)
		req.Takes = append(req.Takes, take(second, "m", "tph", n).Takes...)
		return req
	}
	tests := []struct {
		name    string
		request *limiter.Request
		used    []limiter.Consumption
		want    []int64 // of key, org
	}{
		{"less", take("key", "m", "tph", 400, "rph", 1), []limiter.Consumption{used("tph", 150)}, []int64{850, 850}},
		{"more", take("key", "m", "tph", 400), []limiter.Consumption{used("tph", 600)}, []int64{400, 400}},
		{"into debt", take("key", "m", "tph", 400), []limiter.Consumption{used("tph", 1600)}, []int64{-600, -600}},
		{"nothing", take("key", "m", "tph", 400), []limiter.Consumption{used("tph", 0)}, []int64{1000, 1000}},
		{"as reserved", take("key", "m", "tph", 400), []limiter.Consumption{used("tph", 400)}, []int64{600, 600}},
		{"in parts", take("key", "m", "tph", 400), []limiter.Consumption{used("tph", 100), used("tph", 50)}, []int64{850, 850}},
		{"another limit", take("key", "m", "tph", 400, "rph", 1), []limiter.Consumption{used("rph", 0)}, []int64{600, 600}},
		{"an unknown limit", take("key", "m", "tph", 400), []limiter.Consumption{used("usd", 7)}, []int64{600, 600}},
		{"two takes of one bucket", two("key", "key", 200), []limiter.Consumption{used("tph", 150)}, []int64{850, 850}},
		{"two takes with one ancestor", two("key", "org", 200), []limiter.Consumption{used("tph", 150)}, []int64{850, 850}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newStore(t)
			here := newLimiter(t, limiter.Config{Store: store, Timeout: time.Minute}, family(t))
			there := newLimiter(t, limiter.Config{Store: store, Timeout: time.Minute}, family(t))
			holdings := reserve(t, here, test.request)
			if !settled(t, there, mark(), holdings, test.used...) {
				t.Fatal("the first settlement did not win")
			}
			if diff := cmp.Diff(test.want, left(t, here, "key", "org")); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			m := mark()
			m.Owner = "another"
			if settled(t, here, m, holdings, test.used...) {
				t.Error("a second settlement won")
			}
			if diff := cmp.Diff(test.want, left(t, here, "key", "org")); diff != "" {
				t.Errorf("left after another settlement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldings(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, family(t))
	look, charge, too := take("key", "m", "tph", 0), take("key", "m", "tph", 5), take("key", "m", "tph", 5000)
	charge.Takes[0].Mode = limiter.Charge
	tests := []struct {
		name string
		req  *limiter.Request
		want []string
	}{
		{"a chain", take("key", "m", "tph", 5, "rph", 1), []string{"key 0 tph=5000 rph=1000", "org 1 tph=5000 rph=1000"}},
		{"a peek", look, nil},
		{"a charge", charge, nil},
		{"denied", too, nil},
		{"unlimited", take("free", "m", "tph", 5), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, h := range decide(t, l, t0, test.req).Holdings(nil, test.req, 0) {
				text := []string{h.Bucket.Entity, strconv.Itoa(h.Level)}
				for _, c := range h.Taken {
					text = append(text, fmt.Sprintf("%s=%d", c.Limit, c.Amount))
				}
				got = append(got, strings.Join(text, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("holdings (-want +got):\n%s", diff)
			}
		})
	}
}

// A policy's admission took nothing, so there is nothing to settle.
func TestHoldingsOfAPolicy(t *testing.T) {
	faulty := storetest.NewFaulty(newStore(t), storetest.Always(storetest.FailBefore, storetest.Take))
	l := newLimiter(t, limiter.Config{Store: faulty, Timeout: time.Minute}, family(t))
	req := take("key", "m", "tph", 5)
	d := decide(t, l, t0, req)
	if got := d.Holdings(nil, req, 0); !d.Admitted || got != nil {
		t.Errorf("admitted %v by %v: got holdings %v, want none", d.Admitted, d.Policy, got)
	}
}

func TestSettleFails(t *testing.T) {
	for _, test := range []struct {
		name string
		plan storetest.Plan
		won  bool
		want error
		left int64
	}{
		{"no mark", storetest.Script(storetest.Settle, storetest.FailBefore), false, limiter.ErrUnavailable, 600},
		{"perhaps a mark", storetest.Script(storetest.Settle, storetest.FailAfter), false, limiter.ErrUncertain, 600},
		{"not applied", storetest.Script(storetest.Take, storetest.FailBefore), true, limiter.ErrUnavailable, 600},
		{"perhaps applied", storetest.Script(storetest.Take, storetest.FailAfter), true, limiter.ErrUncertain, 900},
	} {
		t.Run(test.name, func(t *testing.T) {
			faulty := storetest.NewFaulty(newStore(t), nil)
			l := newLimiter(t, limiter.Config{Store: faulty, Timeout: time.Minute}, family(t))
			holdings := reserve(t, l, take("key", "m", "tph", 400))
			faulty.Use(test.plan)
			won, err := l.Settle(context.Background(), t0, mark(), holdings, []limiter.Consumption{used("tph", 100)})
			if won != test.won || !errors.Is(err, test.want) {
				t.Errorf("got won %v, %v, want %v, %v", won, err, test.won, test.want)
			}
			if got := left(t, l, "key")[0]; got != test.left {
				t.Errorf("left: got %d, want %d", got, test.left)
			}
			if errors.Is(test.want, limiter.ErrUncertain) && test.won {
				return // it must not be repeated
			}
			if !settled(t, l, mark(), holdings, used("tph", 100)) {
				t.Error("the same settlement, repeated, did not win")
			}
			if got := left(t, l, "key")[0]; got != 900 {
				t.Errorf("left after all: got %d, want 900", got)
			}
		})
	}
}

func TestBookRefusesToConsume(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, family(t))
	if err := l.Book(t.Context(), t0, take("key", "m", "tph", 5), new(limiter.Decision)); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestBook(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, family(t))
	req := take("key", "m", "tph", 1500)
	req.Takes[0].Mode = limiter.Charge
	var d limiter.Decision
	if err := l.Book(t.Context(), t0, req, &d); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, &d, "admitted=true none retry=0s", "key/m tph -500 left exceeded=false", "org/m tph -500 left exceeded=false")
}
