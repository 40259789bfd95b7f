package limiter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A request in flight takes from one bucket, and from two in the last quarter of a window. Limits in flight have
// buckets of their own.
func TestBucketsOfARequestInFlight(t *testing.T) {
	store := &keysOf{Store: newStore(t)}
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t,
		limiter.Concurrent("slots", 5, time.Minute), limiter.Concurrent("gpu", 5, time.Minute))})
	start := time.Unix(24_000, 0)
	for quarter, want := range []int{1, 1, 1, 2, 1} {
		now := start.Add(time.Duration(quarter) * time.Minute)
		store.keys = nil
		decide(t, l, now, take("a", "m", "slots", 1))
		if len(store.keys) != want {
			t.Errorf("quarter %d: buckets %+v, want %d", quarter, store.keys, want)
		}
		store.keys = nil
		decide(t, l, now, take("a", "m", "slots", 1, "gpu", 1))
		if len(store.keys) != 2*want {
			t.Errorf("quarter %d, two limits: buckets %+v, want %d", quarter, store.keys, 2*want)
		}
	}
}

// An adjustment of a limit in flight is one of the present quarter and of the next one, and is shown by its own
// name.
func TestAdjustRequestsInFlight(t *testing.T) {
	for quarter := range 4 {
		store := newStore(t)
		buckets := limiter.PresentBuckets(store)
		l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.Concurrent("slots", 5, time.Minute))})
		now := time.Unix(24_000, 0).Add(time.Duration(quarter) * time.Minute)
		decide(t, l, now, take("a", "m", "slots", 4))
		list, err := buckets.ListBuckets(t.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{Size: 10})
		if err != nil || len(list.Items) == 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		key := list.Items[0].Key
		for _, b := range list.Items {
			if b.Key.Window.Begun(now) {
				key = b.Key
			}
		}
		a := limiter.Adjustment{Bucket: key, Limit: "slots", Kind: limiter.AdjustSet, Tokens: 3 * limiter.Milli, Once: "once"}
		for _, repeated := range []bool{false, true} {
			done, err := buckets.AdjustBucket(t.Context(), now, a)
			if err != nil || !done.Found || done.Repeated != repeated {
				t.Fatalf("quarter %d: %+v, %v", quarter, done, err)
			}
			got := []string{}
			for _, s := range [][]limiter.LimitState{done.Before.Limits, done.After.Limits} {
				for _, l := range s {
					got = append(got, l.Limit.Name)
				}
			}
			if diff := cmp.Diff([]string{"slots", "slots"}, got); diff != "" {
				t.Errorf("quarter %d, repeated %t: limits (-want +got):\n%s", quarter, repeated, diff)
			}
			booked := done.Booked
			if repeated && done.First != nil {
				booked = done.First.Booked
			}
			if diff := cmp.Diff([]limiter.Booking{{Limit: "slots", Tokens: 2 * limiter.Milli}}, booked); diff != "" {
				t.Errorf("quarter %d, repeated %t: booked (-want +got):\n%s", quarter, repeated, diff)
			}
		}
		for i, want := range []bool{true, false} {
			if d := decide(t, l, now.Add(time.Minute), take("a", "m", "slots", 2)); d.Admitted != want { // 3 are there in the next quarter too
				t.Errorf("quarter %d, request %d: admitted %t, want %t", quarter, i, d.Admitted, want)
			}
		}
	}
}

// The names of limits in flight leave room for the number of a quarter.
func TestNamesOfLimitsInFlight(t *testing.T) {
	name := strings.Repeat("n", limiter.MaxLimitName-2)
	if err := limiter.Concurrent(name, 5, time.Minute).Validate(); err != nil {
		t.Error(err)
	}
	if err := limiter.Concurrent(name+"n", 5, time.Minute).Validate(); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("a name of %d bytes: %v", len(name)+1, err)
	}
}

// A limit may have the name that a quarter of a limit in flight has in its bucket.
func TestALimitWithTheNameOfAQuarter(t *testing.T) {
	day := limiter.Calendar{Unit: limiter.CalendarDay}
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System:    set(t, limiter.Concurrent("slots", 5, time.Minute)),
		Resources: map[string]*limiter.Limits{"m": set(t, limiter.Quota("slots.1", 9, day))},
	})
	got := map[string]limiter.Source{}
	for _, s := range decide(t, l, time.Unix(24_000, 0), take("a", "m", "slots", 1, "slots.1", 1)).Statuses {
		got[s.Limit.Name] = s.Source
	}
	want := map[string]limiter.Source{"slots": limiter.SourceSystemConfig, "slots.1": limiter.SourceResourceConfig}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// An adjustment that names no limit is one of two quarters too, also in the bucket of a rule's own limits, which
// only the store knows.
func TestAdjustRequestsInFlightOfARule(t *testing.T) {
	for quarter := range 4 {
		store := newStore(t)
		buckets := limiter.PresentBuckets(store)
		l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{})
		now := time.Unix(24_000, 0).Add(time.Duration(quarter) * time.Minute)
		asks := func(tokens int) *limiter.Request {
			req := take("a", "m", "slots", tokens)
			req.Takes[0].Limits = set(t, limiter.Concurrent("slots", 5, time.Minute))
			return req
		}
		decide(t, l, now, asks(1))
		list, err := buckets.ListBuckets(t.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Items {
			if !b.Key.Window.Begun(now) {
				continue
			}
			a := limiter.Adjustment{Bucket: b.Key, Kind: limiter.AdjustTakeOut, Tokens: 2 * limiter.Milli}
			if done, err := buckets.AdjustBucket(t.Context(), now, a); err != nil || !done.Found {
				t.Fatalf("quarter %d: %+v, %v", quarter, done, err)
			}
		}
		for after, want := range []bool{false, false, true} {
			if d := decide(t, l, now.Add(time.Duration(after)*time.Minute), asks(5)); d.Admitted != want {
				t.Errorf("quarter %d, %d later: admitted %t, want %t", quarter, after, d.Admitted, want)
			}
		}
	}
}

// Errors name a limit in flight and its quarter. The audit names the limit, of which two quarters change.
func TestAQuarterInWords(t *testing.T) {
	store := newStore(t)
	buckets := limiter.PresentBuckets(store)
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.Concurrent("slots", 5, time.Minute))})
	now := time.Unix(24_000, 0)
	decide(t, l, now, take("a", "m", "slots", 1))
	list, err := buckets.ListBuckets(t.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{Size: 10})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	key := list.Items[0].Key
	_, err = buckets.AdjustBucket(t.Context(), now, limiter.Adjustment{Bucket: key, Kind: limiter.AdjustSet, Tokens: 9 * limiter.Milli})
	if err == nil || !strings.Contains(err.Error(), "limit slots, quarter 1 of 4 holds at most 5 tokens") {
		t.Error(err)
	}
	a := limiter.Adjustment{Bucket: key, Limit: "slots.2", Kind: limiter.AdjustTakeOut, Tokens: limiter.Milli, Once: "invoice"}
	if got, want := a.Detail(&limiter.Adjusted{}), `limit slots, 1 tokens; once "invoice"`; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
}

// Of the buckets of a limit in flight the present one is listed: it has all requests.
func TestListRequestsInFlight(t *testing.T) {
	store := newStore(t)
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.Concurrent("slots", 5, time.Minute))})
	for quarter := range 6 { // the next window begins with the fifth
		now := time.Unix(24_000, 0).Add(time.Duration(quarter) * time.Minute)
		decide(t, l, now, take("a", "m", "slots", 1))
		list, err := limiter.PresentBuckets(store).ListBuckets(t.Context(), now, limiter.DefaultNamespace, limiter.BucketFilter{}, limiter.Page{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].Key.Window.Over(now) || !list.Items[0].Key.Window.Begun(now) {
			t.Errorf("quarter %d: %+v", quarter, list.Items)
		}
	}
}

// A caller may name a window that has no time. There is no such bucket.
func TestAdjustAWindowWithoutTime(t *testing.T) {
	key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "a", Resource: "m"}
	if err := key.ParseVariant("0000000000000000@240_240_8000000000000001"); err != nil {
		t.Fatal(err)
	}
	done, err := limiter.PresentBuckets(newStore(t)).AdjustBucket(t.Context(), t0, limiter.Adjustment{Bucket: key, Kind: limiter.AdjustReset})
	if err != nil || done.Found {
		t.Errorf("%+v, %v", done, err)
	}
}
