package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// metered is a limiter over a store, and the expected usage of its decisions.
type metered struct {
	UsageStore

	limiter *limiter.Limiter
	clock   time.Time
	want    map[string]int64 // tokens by entity and limit
}

// newMetered returns a limiter with limits of 10 and 1,000 a day for all. A charge goes 100 tokens below zero.
func newMetered(t *testing.T, s UsageStore) *metered {
	t.Helper()
	m := &metered{UsageStore: s, clock: usageBegin(), want: map[string]int64{}}
	var err error
	m.limiter, err = limiter.New(limiter.Config{Store: s.Store, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	system, err := limiter.NewLimits(limiter.PerDay("rpm", 10), limiter.PerDay("tpm", 1000).WithMaxDebt(100), limiter.Unlimited("free"))
	if err == nil {
		err = m.limiter.SetStatic(t.Context(), limiter.Static{System: system})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.limiter.Close)
	return m
}

// now returns the time of the next call. No two calls have the same time.
func (m *metered) now() time.Time {
	m.clock = m.clock.Add(time.Millisecond)
	return m.clock
}

// step is a request, and its additions to usage.
type step struct {
	name     string
	ask      func() *limiter.Request
	admitted bool
	adds     map[string]int64 // tokens, by entity and limit
}

// takeOf returns a take of an entity for resource r, of tokens by limit.
func takeOf(entity string, mode limiter.Mode, amounts map[string]int64) limiter.Take {
	t := limiter.Take{Entity: entity, Resource: "r", Mode: mode}
	for _, limit := range slices.Sorted(maps.Keys(amounts)) {
		t.Consume = append(t.Consume, limiter.Consumption{Limit: limit, Amount: tokens(amounts[limit])})
	}
	return t
}

// asks returns a request of takes.
func asks(takes ...limiter.Take) func() *limiter.Request {
	return func() *limiter.Request { return &limiter.Request{Namespace: "ns", Takes: takes} }
}

// changed returns a take with a change.
func changed(t limiter.Take, change func(t *limiter.Take)) limiter.Take {
	change(&t)
	return t
}

type use = map[string]int64

// decisionSteps are calls of all kinds. The parent consumes the takes of its children.
func decisionSteps(own *limiter.Limits) []step {
	const consume, charge, refund = limiter.Consume, limiter.Charge, limiter.Refund
	both := use{"rpm": 1, "tpm": 100}
	underParent := func(t *limiter.Take) { t.Parents = []string{"p"} }
	shadow := func(t *limiter.Take) { t.Label, t.Shadow = "trial", true }
	ownLimits := func(t *limiter.Take) { t.Limits = own }
	return []step{
		{"a take", asks(takeOf("a", consume, both)), true, use{"a rpm": 1, "a tpm": 100}},
		{"a peek", asks(takeOf("a", consume, use{"rpm": 0, "tpm": 0})), true, nil},
		{"a peek beside a take", asks(takeOf("a", consume, use{"rpm": 0}), takeOf("b", consume, both)), true, use{"b rpm": 1, "b tpm": 100}},
		{"a denial", asks(takeOf("a", consume, use{"rpm": 1, "tpm": 901})), false, nil},
		{"a denial by another bucket", asks(takeOf("a", consume, both), takeOf("b", consume, use{"rpm": 10})), false, nil},
		{"a denial by a limit that is nowhere", asks(takeOf("a", consume, both), takeOf("b", consume, use{"none": 1})), false, nil},
		{"a denial with a charge", asks(takeOf("a", charge, use{"tpm": 50}), takeOf("b", consume, use{"rpm": 10})), false, use{"a tpm": 50}},
		{"a child", asks(changed(takeOf("c", consume, both), underParent)), true, use{"c rpm": 1, "c tpm": 100, "p rpm": 1, "p tpm": 100}},
		{
			"two children", asks(changed(takeOf("c", consume, both), underParent), changed(takeOf("d", consume, both), underParent)), true,
			use{"c rpm": 1, "c tpm": 100, "d rpm": 1, "d tpm": 100, "p rpm": 2, "p tpm": 200},
		},
		{"a denial by the parent", asks(changed(takeOf("e", consume, use{"tpm": 800}), underParent)), false, nil},
		{"two takes of one bucket", asks(takeOf("a", consume, both), takeOf("a", consume, both)), true, use{"a rpm": 2, "a tpm": 200}},
		{"a refund", asks(takeOf("a", refund, use{"tpm": 30})), true, use{"a tpm": -30}},
		{"a charge and a refund", asks(takeOf("a", refund, use{"tpm": 70}), takeOf("a", charge, use{"tpm": 20})), true, use{"a tpm": -50}},
		{"limits of its own", asks(changed(takeOf("a", consume, both), ownLimits)), true, use{"a rpm": 1, "a tpm": 100}},
		{"a shadow", asks(changed(takeOf("a", consume, both), shadow)), true, nil},
		{"a charge of a shadow", asks(changed(takeOf("a", charge, both), shadow)), true, nil},
		{"a shadow with a parent", asks(changed(changed(takeOf("c", consume, both), underParent), shadow)), true, nil},
		{"an unlimited limit", asks(takeOf("a", consume, use{"free": 7})), true, nil},
		{"more is charged than the debt allows", asks(takeOf("f", charge, use{"tpm": 1500})), true, use{"f tpm": 1500}},
		{"a refund beyond the capacity", asks(takeOf("g", refund, use{"tpm": 40})), true, use{"g tpm": -40}},
	}
}

// checkUsageOfDecisions: each kind of decision adds its consumption to usage, once, and nothing
// else does.
func checkUsageOfDecisions(t *testing.T, s UsageStore) {
	if s.Store == nil {
		t.Skip("nothing takes tokens from this catalog")
	}
	m := newMetered(t, s)
	own, err := limiter.NewLimits(limiter.PerDay("rpm", 5), limiter.PerDay("tpm", 500))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range decisionSteps(own) {
		var d limiter.Decision
		if err := m.limiter.Decide(t.Context(), m.now(), step.ask(), &d); err != nil || d.Admitted != step.admitted || d.Policy != limiter.Unset {
			t.Fatalf("%s: admitted = %t, %v, policy %v, error %v; want %t", step.name, d.Admitted, d.Reason, d.Policy, err, step.admitted)
		}
		m.wantUsage(t, step.name, step.adds)
	}
}

// checkUsageOfReservations: the amount of a reservation counts as used until it is settled, and
// then the settled amount does.
func checkUsageOfReservations(t *testing.T, s UsageStore) {
	if s.Store == nil {
		t.Skip("nothing takes tokens from this catalog")
	}
	m := newMetered(t, s)
	reserve := func(name string) (holdings []limiter.Holding) {
		req := asks(changed(takeOf("a", limiter.Consume, use{"tpm": 100}), func(t *limiter.Take) { t.Parents = []string{"p"} }))()
		var d limiter.Decision
		if err := m.limiter.Decide(t.Context(), m.now(), req, &d); err != nil || !d.Admitted {
			t.Fatalf("%s: admitted = %t, error %v", name, d.Admitted, err)
		}
		m.wantUsage(t, name, use{"a tpm": 100, "p tpm": 100})
		return d.Holdings(nil, req, 0)
	}
	settle := func(name, id string, holdings []limiter.Holding, used int64, adds use) {
		mark := limiter.Mark{Namespace: "ns", ID: id, Owner: name, Expires: m.now().Add(time.Hour)}
		if _, err := m.limiter.Settle(t.Context(), m.now(), mark, holdings, []limiter.Consumption{{Limit: "tpm", Amount: tokens(used)}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m.wantUsage(t, name, adds)
	}
	held := reserve("the first reservation")
	settle("fewer", "1", held, 30, use{"a tpm": -70, "p tpm": -70})
	settle("again", "1", held, 30, nil)
	held = reserve("the second reservation")
	settle("more", "2", held, 250, use{"a tpm": 150, "p tpm": 150})
	held = reserve("the third reservation")
	settle("none", "3", held, 0, use{"a tpm": -100, "p tpm": -100})
	lease, _, err := m.limiter.Acquire(t.Context(), m.now(), asks(takeOf("b", limiter.Consume, use{"tpm": 10}))())
	if err == nil {
		err = lease.Adjust(t.Context(), m.now(), map[string]int64{"tpm": tokens(5)})
	}
	if err != nil {
		t.Fatal(err)
	}
	m.wantUsage(t, "an adjusted lease", use{"b tpm": 15})
	if err := lease.Rollback(t.Context(), m.now()); err != nil {
		t.Fatal(err)
	}
	m.wantUsage(t, "a lease that is rolled back", use{"b tpm": -15})
}

// givenBack bounds the time in which a denied call gives back its tokens of other buckets.
const givenBack = 5 * time.Second

// wantUsage adds to the expected usage, and requires it of the hour.
func (m *metered) wantUsage(t *testing.T, after string, adds use) {
	t.Helper()
	for of, amount := range adds {
		m.want[of] += tokens(amount)
	}
	maps.DeleteFunc(m.want, func(_ string, n int64) bool { return n == 0 })
	got := m.used(t)
	for end := time.Now().Add(givenBack); !maps.Equal(got, m.want) && time.Now().Before(end); {
		got = m.used(t)
	}
	if !maps.Equal(got, m.want) {
		t.Errorf("after %s: usage %s, want %s", after, usageSums(got), usageSums(m.want))
	}
	m.want = got // later steps are compared on their own
}

// used returns the usage by entity and limit, except 0.
func (m *metered) used(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, u := range m.list(t, 100, limiter.UsageFilter{}) {
		for _, l := range u.Limits {
			all[u.Entity+" "+l.Limit] += l.Tokens
		}
	}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}

func usageSums(sums map[string]int64) string {
	all := make([]string, 0, len(sums))
	for _, of := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, fmt.Sprintf("%s %d", of, sums[of]))
	}
	return strings.Join(all, ", ")
}

// checkUsageOfLateDecisions: takes of calls whose deadline passes are added to usage in the end,
// once. Late denials are not.
func checkUsageOfLateDecisions(t *testing.T, s UsageStore) {
	if s.Store == nil {
		t.Skip("nothing takes tokens from this catalog")
	}
	const calls = 100
	m := newMetered(t, s)
	c := newClient(t, s.Store)
	key, org := c.one("key", slow(1000), limiter.Spend{Take: tokens(1)}), c.one("org", slow(calls/2), limiter.Spend{Take: tokens(1)})
	key.Bucket.Namespace, org.Bucket.Namespace = "ns", "ns"
	taken := tokens(1)
	if admitted, err := s.Store.Take(t.Context(), m.now(), []limiter.Op{spending(key, key.Spends[0]), spending(org, org.Spends[0])}); err != nil || !admitted {
		t.Fatalf("the first call: admitted = %t, error %v", admitted, err)
	}
	for i := range calls {
		admitted, err := s.Store.Take(passing(t.Context(), i%97), m.now(), []limiter.Op{spending(key, key.Spends[0]), spending(org, org.Spends[0])})
		if err != nil && !errors.Is(err, limiter.ErrUnavailable) {
			t.Fatalf("a call whose deadline passed: %v", err)
		}
		if admitted {
			taken += tokens(1)
		}
	}
	ctx, cancel := within(t)
	defer cancel()
	want := fmt.Sprintf("key l %d, org l %d", taken, taken)
	got := usageSums(m.used(t))
	for ; got != want && ctx.Err() == nil; got = usageSums(m.used(t)) {
		if _, err := s.Store.Take(t.Context(), m.now(), []limiter.Op{spending(key, limiter.Spend{Limit: "l", Look: true})}); err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("after %d calls whose deadline passed: usage %s, want %s", calls, got, want)
	}
}
