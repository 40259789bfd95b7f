package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// t0 is the start of every script.
var t0 = time.UnixMilli(1_000_000)

func newStore(t *testing.T) *embedded.Store {
	t.Helper()
	s := embedded.New(embedded.Config{SweepInterval: time.Hour}) // tests have times of their own
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newLimiter(t *testing.T, cfg limiter.Config, static limiter.Static) *limiter.Limiter {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = newStore(t)
	}
	l, err := limiter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetStatic(t.Context(), static); err != nil {
		t.Fatal(err)
	}
	return l
}

func set(t *testing.T, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	s, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take returns a request of one take: entity, resource, and limit and whole tokens in turn.
func take(entity, resource string, amounts ...any) *limiter.Request {
	t := limiter.Take{Entity: entity, Resource: resource}
	for i := 0; i < len(amounts); i += 2 {
		t.Consume = append(t.Consume, limiter.Consumption{Limit: amounts[i].(string), Amount: int64(amounts[i+1].(int)) * limiter.Milli})
	}
	return &limiter.Request{Takes: []limiter.Take{t}}
}

func decide(t *testing.T, l *limiter.Limiter, now time.Time, req *limiter.Request) *limiter.Decision {
	t.Helper()
	d := new(limiter.Decision)
	if err := l.Decide(t.Context(), now, req, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// brief returns a decision with one line for each status.
func brief(d *limiter.Decision) []string {
	out := make([]string, 0, 1+len(d.Statuses))
	out = append(out, fmt.Sprintf("admitted=%t %v retry=%v", d.Admitted, d.Reason, d.RetryAfter))
	for _, s := range d.Statuses {
		out = append(out, fmt.Sprintf("%s/%s %s %d left exceeded=%t", s.Entity, s.Resource, s.Limit.Name, s.Available/limiter.Milli, s.Exceeded))
	}
	return out
}

func wantBrief(t *testing.T, d *limiter.Decision, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, brief(d)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestResolutionPrecedence(t *testing.T) {
	perResource := func(n int64) map[string]*limiter.Limits {
		return map[string]*limiter.Limits{"gpt-4": set(t, limiter.PerMinute("rpm", n))}
	}
	static := limiter.Static{
		System:    set(t, limiter.PerMinute("rpm", 1)),
		Resources: perResource(2),
		Entities: map[string]limiter.StaticEntity{
			"default": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.PerMinute("rpm", 3))}},
			"both":    {Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.PerMinute("rpm", 3)), "gpt-4": set(t, limiter.PerMinute("rpm", 4))}},
			"bare":    {},
		},
	}
	store := newStore(t)
	l := newLimiter(t, limiter.Config{Store: store}, static)

	type result struct {
		Capacity int64
		Source   limiter.Source
	}
	resolve := func(entity, resource string) result {
		d := decide(t, l, t0, take(entity, resource, "rpm", 0))
		return result{d.Statuses[0].Limit.Capacity, d.Statuses[0].Source}
	}
	check := func(entity, resource string, capacity int64, source limiter.Source) {
		t.Helper()
		if diff := cmp.Diff(result{capacity, source}, resolve(entity, resource)); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", entity, resource, diff)
		}
	}
	check("both", "gpt-4", 4, limiter.SourceEntityConfig)
	check("both", "other", 3, limiter.SourceEntityDefaultConfig)
	check("default", "gpt-4", 3, limiter.SourceEntityDefaultConfig)
	check("bare", "gpt-4", 2, limiter.SourceResourceConfig)
	check("nobody", "gpt-4", 2, limiter.SourceResourceConfig)
	check("nobody", "other", 1, limiter.SourceSystemConfig)

	put := func(ref limiter.Ref, n int64) {
		t.Helper()
		if err := store.PutLimits(t.Context(), limiter.DefaultNamespace, ref, limiter.Record{Limits: set(t, limiter.PerMinute("rpm", n))}); err != nil {
			t.Fatal(err)
		}
	}
	put(limiter.SystemLimitsRef(), 11)
	check("nobody", "other", 11, limiter.SourceSystem)
	check("nobody", "gpt-4", 2, limiter.SourceResourceConfig)
	put(limiter.ResourceLimitsRef("gpt-4"), 12)
	check("nobody", "gpt-4", 12, limiter.SourceResource)
	check("default", "gpt-4", 3, limiter.SourceEntityDefaultConfig)
	put(limiter.EntityLimitsRef("default", limiter.DefaultResource), 13)
	check("default", "gpt-4", 13, limiter.SourceEntityDefault)
	check("both", "gpt-4", 4, limiter.SourceEntityConfig)
	put(limiter.EntityLimitsRef("both", "gpt-4"), 14)
	check("both", "gpt-4", 14, limiter.SourceEntity)

	own := take("both", "gpt-4", "rpm", 0)
	own.Takes[0].Limits = set(t, limiter.PerMinute("rpm", 99))
	for _, tt := range []struct {
		entity   string
		by       limiter.Origin
		capacity int64
		source   limiter.Source
	}{
		{"both", limiter.ByRule, 14, limiter.SourceEntity},
		{"default", limiter.ByRule, 99, limiter.SourceRule},
		{"default", limiter.ByPlan, 13, limiter.SourceEntityDefault},
		{"nobody", limiter.ByPlan, 99, limiter.SourcePlan},
	} {
		own.Takes[0].Entity, own.Takes[0].LimitsBy = tt.entity, tt.by
		if d := decide(t, l, t0, own); d.Statuses[0].Limit.Capacity != tt.capacity || d.Statuses[0].Source != tt.source {
			t.Errorf("own limits of %s by %d: got %+v", tt.entity, tt.by, d.Statuses[0])
		}
	}
	own.Takes[0].Entity, own.Takes[0].Given = "both", "rpm"
	if d := decide(t, l, t0, own); d.Statuses[0].Limit.Capacity != 99 || d.Statuses[0].Source != limiter.SourceRequest {
		t.Errorf("a limit of the call: got %+v", d.Statuses[0])
	}
}

// A limit of a level leaves those of other names to the levels below, up to a record that stands alone.
func TestLevelsMergeByName(t *testing.T) {
	store := newStore(t)
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{
		System:    set(t, limiter.PerMinute("rpm", 10), limiter.PerMinute("tpm", 100)),
		Resources: map[string]*limiter.Limits{"gpt-4": set(t, limiter.PerMinute("rpm", 5))},
	})
	both := take("k", "gpt-4", "tpm", 1, "rpm", 1)
	wantBrief(t, decide(t, l, t0, both), "admitted=true none retry=0s", "k/gpt-4 tpm 99 left exceeded=false", "k/gpt-4 rpm 4 left exceeded=false")
	alone := limiter.Record{Limits: set(t, limiter.PerMinute("rpm", 7)), Alone: true}
	if err := store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.EntityLimitsRef("k", limiter.DefaultResource), alone); err != nil {
		t.Fatal(err)
	}
	d := decide(t, l, t0, both)
	wantBrief(t, d, "admitted=false limit_not_configured retry=0s")
	if d.MissingTake != 0 || d.MissingLimit != "tpm" {
		t.Errorf("missing: got take %d limit %q", d.MissingTake, d.MissingLimit)
	}
}

// A charge or a refund of a limit that is configured nowhere denies neither itself nor other takes.
func TestChargesWithoutALimitDenyNoRequest(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
	for _, mode := range []limiter.Mode{limiter.Charge, limiter.Refund} {
		req := take("k", "r", "tpm", 1)
		req.Takes[0].Mode = mode
		wantBrief(t, decide(t, l, t0, req), "admitted=true none retry=0s")
		req.Takes = append(req.Takes, take("k", "r", "rpm", 1).Takes...)
		d := decide(t, l, t0, req)
		if !d.Admitted || d.MissingTake != 0 || d.MissingLimit != "tpm" {
			t.Errorf("mode %d: got admitted %v, missing take %d limit %q", mode, d.Admitted, d.MissingTake, d.MissingLimit)
		}
		req.Takes[1].Consume[0].Limit = "gone"
		if d := decide(t, l, t0, req); d.Reason != limiter.ReasonNotConfigured || d.MissingTake != 1 || d.MissingLimit != "gone" {
			t.Errorf("mode %d: got %v, missing take %d limit %q", mode, d.Reason, d.MissingTake, d.MissingLimit)
		}
	}
}

func TestCascade(t *testing.T) {
	rpm := func(n int64) map[string]*limiter.Limits {
		return map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.PerMinute("rpm", n))}
	}
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System: set(t, limiter.PerMinute("rpm", 100)),
		Entities: map[string]limiter.StaticEntity{
			"key":     {Parent: "project", Cascade: true},
			"lone":    {Parent: "project"},
			"project": {Parent: "org", Cascade: true, Limits: rpm(10)},
			"org":     {Limits: rpm(12)},
		},
	})
	wantBrief(t, decide(t, l, t0, take("key", "m", "rpm", 8)),
		"admitted=true none retry=0s", "key/m rpm 92 left exceeded=false", "project/m rpm 2 left exceeded=false", "org/m rpm 4 left exceeded=false")
	wantBrief(t, decide(t, l, t0, take("lone", "m", "rpm", 50)),
		"admitted=true none retry=0s", "lone/m rpm 50 left exceeded=false")

	t.Run("a denial by the parent takes nothing from the child", func(t *testing.T) {
		want := []string{"admitted=false limit_exhausted retry=6s", "key/m rpm 92 left exceeded=false", "project/m rpm 2 left exceeded=true", "org/m rpm 4 left exceeded=false"}
		wantBrief(t, decide(t, l, t0, take("key", "m", "rpm", 3)), want...)
		wantBrief(t, decide(t, l, t0, take("key", "m", "rpm", 3)), want...)
	})
	t.Run("named parents win over configured ones", func(t *testing.T) {
		req := take("key", "m", "rpm", 1)
		req.Takes[0].Parents = []string{"team"}
		wantBrief(t, decide(t, l, t0, req),
			"admitted=true none retry=0s", "key/m rpm 91 left exceeded=false", "team/m rpm 99 left exceeded=false")
	})
	t.Run("the last named parent's own parent follows", func(t *testing.T) {
		req := take("other", "m", "rpm", 1)
		req.Takes[0].Parents = []string{"project"}
		wantBrief(t, decide(t, l, t0, req),
			"admitted=true none retry=0s", "other/m rpm 99 left exceeded=false", "project/m rpm 1 left exceeded=false", "org/m rpm 3 left exceeded=false")
	})
	t.Run("a name that comes twice counts once", func(t *testing.T) {
		req := take("twin", "m", "rpm", 1)
		req.Takes[0].Parents = []string{"twin", "dad", "dad"}
		wantBrief(t, decide(t, l, t0, req),
			"admitted=true none retry=0s", "twin/m rpm 99 left exceeded=false", "dad/m rpm 99 left exceeded=false")
	})
}

func TestHierarchyRefusals(t *testing.T) {
	entities := func(links ...string) limiter.Static {
		s := limiter.Static{Entities: map[string]limiter.StaticEntity{}}
		for i := 0; i < len(links); i += 2 {
			s.Entities[links[i]] = limiter.StaticEntity{Parent: links[i+1], Cascade: true}
		}
		return s
	}
	chain := make([]string, 0, 16)
	for i := range 8 {
		chain = append(chain, strconv.Itoa(i), strconv.Itoa(i+1))
	}
	for name, s := range map[string]limiter.Static{
		"self":   entities("a", "a"),
		"circle": entities("a", "b", "b", "c", "c", "a"),
		"nine":   entities(chain...),
	} {
		l := newLimiter(t, limiter.Config{}, limiter.Static{})
		if err := l.SetStatic(t.Context(), s); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	l := newLimiter(t, limiter.Config{}, entities(chain[:14]...)) // eight entities
	if err := l.SetStatic(t.Context(), entities(chain[:14]...)); err != nil {
		t.Errorf("a chain of %d: %v", limiter.MaxLevels, err)
	}
}

func TestChainThatGrewTooLongIsDenied(t *testing.T) {
	store := newStore(t)
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10))})
	for i := 8; i >= 0; i-- { // each is valid when it is stored; then the whole gets one more above
		e := limiter.Entity{ID: strconv.Itoa(i), Cascade: true, Parent: strconv.Itoa(i + 1)}
		if i == 8 {
			e.Parent = ""
		}
		if i < 2 {
			continue
		}
		if _, err := store.PutEntity(t.Context(), t0, limiter.DefaultNamespace, e); err != nil {
			t.Fatal(err)
		}
	}
	req := take("0", "m", "rpm", 1)
	req.Takes[0].Parents = []string{"1", "2"} // 0, 1, 2 and 3 to 8: nine
	wantBrief(t, decide(t, l, t0, req), "admitted=false hierarchy_too_deep retry=0s")
}

func TestAllOrNothing(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 2), limiter.PerMinute("tpm", 100))})
	both := take("a", "m", "rpm", 1, "tpm", 60)
	both.Takes = append(both.Takes, take("b", "m", "rpm", 1).Takes[0])
	wantBrief(t, decide(t, l, t0, both), "admitted=true none retry=0s",
		"a/m rpm 1 left exceeded=false", "a/m tpm 40 left exceeded=false", "b/m rpm 1 left exceeded=false")
	wantBrief(t, decide(t, l, t0, both), "admitted=false limit_exhausted retry=12s",
		"a/m rpm 1 left exceeded=false", "a/m tpm 40 left exceeded=true", "b/m rpm 1 left exceeded=false")
	if d := decide(t, l, t0.Add(12*time.Second), both); !d.Admitted {
		t.Errorf("after the returned time: %v", brief(d))
	}
}

func TestTakesOfOneBucketMerge(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 3))})
	twice := take("a", "m", "rpm", 2)
	twice.Takes = append(twice.Takes, twice.Takes[0])
	wantBrief(t, decide(t, l, t0, twice), "admitted=false exceeds_capacity retry=0s",
		"a/m rpm 3 left exceeded=true", "a/m rpm 3 left exceeded=true")
}

// A peek needs a whole token, also with a take of less.
func TestDeficitOfALookBesideATake(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1))})
	part := func(amounts ...int64) *limiter.Request {
		req := take("a", "m")
		for _, n := range amounts {
			req.Takes[0].Consume = append(req.Takes[0].Consume, limiter.Consumption{Limit: "rpm", Amount: n})
		}
		return req
	}
	decide(t, l, t0, part(300))
	if s := decide(t, l, t0, part(500, 0)).Statuses[0]; s.Deficit() != 300 || s.RetryAfter != 18*time.Second {
		t.Errorf("got deficit %d, retry %v; want 300 and 18s", s.Deficit(), s.RetryAfter)
	}
}

func TestMoreThanCapacityIsNeverPromised(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 3))})
	d := decide(t, l, t0, take("a", "m", "rpm", 4))
	wantBrief(t, d, "admitted=false exceeds_capacity retry=0s", "a/m rpm 3 left exceeded=true")
	if !d.Statuses[0].Never {
		t.Error("status does not say never")
	}
}

func TestUnlimited(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System:   set(t, limiter.PerMinute("rpm", 1)),
		Entities: map[string]limiter.StaticEntity{"free": {Limits: map[string]*limiter.Limits{limiter.DefaultResource: set(t, limiter.Unlimited("rpm"))}}},
	})
	for range 3 {
		wantBrief(t, decide(t, l, t0, take("free", "m", "rpm", 1000)), "admitted=true none retry=0s")
	}
}

func TestChargeAndRefund(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("tpm", 60).WithMaxDebt(30))})
	as := func(mode limiter.Mode, n int) *limiter.Request {
		r := take("a", "m", "tpm", n)
		r.Takes[0].Mode = mode
		return r
	}
	wantBrief(t, decide(t, l, t0, as(limiter.Charge, 70)), "admitted=true none retry=0s", "a/m tpm -10 left exceeded=false")
	wantBrief(t, decide(t, l, t0, take("a", "m", "tpm", 0)), "admitted=false limit_exhausted retry=11s", "a/m tpm -10 left exceeded=true")
	wantBrief(t, decide(t, l, t0, as(limiter.Charge, 1000)), "admitted=true none retry=0s", "a/m tpm -30 left exceeded=false")
	wantBrief(t, decide(t, l, t0, as(limiter.Refund, 50)), "admitted=true none retry=0s", "a/m tpm 20 left exceeded=false")
	wantBrief(t, decide(t, l, t0, as(limiter.Refund, 1_000_000)), "admitted=true none retry=0s", "a/m tpm 60 left exceeded=false")

	t.Run("a charge is applied although another take denies", func(t *testing.T) {
		req := as(limiter.Charge, 5)
		req.Takes = append(req.Takes, take("b", "m", "tpm", 61).Takes[0])
		wantBrief(t, decide(t, l, t0, req), "admitted=false exceeds_capacity retry=0s", "a/m tpm 55 left exceeded=false", "b/m tpm 60 left exceeded=true")
	})
	t.Run("a charge is applied although a limit is not configured", func(t *testing.T) {
		req := as(limiter.Charge, 5)
		req.Takes = append(req.Takes, take("b", "m", "nope", 1).Takes[0])
		wantBrief(t, decide(t, l, t0, req), "admitted=false limit_not_configured retry=0s")
		wantBrief(t, decide(t, l, t0, take("a", "m", "tpm", 0)), "admitted=true none retry=0s", "a/m tpm 50 left exceeded=false")
	})
}

func TestLabelsAndOwnLimitsHaveBucketsApart(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1))})
	labelled := take("a", "m", "rpm", 1)
	labelled.Takes[0].Label = "shadow/trial"
	own := take("a", "m", "rpm", 1)
	own.Takes[0].Limits = set(t, limiter.PerMinute("rpm", 1).WithBurst(2))
	for name, req := range map[string]*limiter.Request{"ordinary": take("a", "m", "rpm", 1), "labelled": labelled, "own": own} {
		if d := decide(t, l, t0, req); !d.Admitted {
			t.Errorf("%s: %v", name, brief(d))
		}
	}
}

func TestStaticChangeReachesLiveBuckets(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	decide(t, l, t0, take("a", "m", "rpm", 10))
	for _, step := range []struct {
		capacity int64
		left     string
	}{{5, "5"}, {100, "90"}, {3, "3"}} {
		if err := l.SetStatic(t.Context(), limiter.Static{System: set(t, limiter.PerMinute("rpm", step.capacity))}); err != nil {
			t.Fatal(err)
		}
		wantBrief(t, decide(t, l, t0, take("a", "m", "rpm", 0)), "admitted=true none retry=0s", "a/m rpm "+step.left+" left exceeded=false")
	}
}

func TestInvalidAmounts(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1))})
	for _, amount := range []int64{-1, tokenbucket.MaxAmount + 1} {
		req := take("a", "m", "rpm", 0)
		req.Takes[0].Consume[0].Amount = amount
		if err := l.Decide(t.Context(), t0, req, new(limiter.Decision)); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("amount %d: got %v, want ErrInvalid", amount, err)
		}
	}
	if _, err := limiter.New(limiter.Config{}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("no store: got %v", err)
	}
}

func TestDecisionsAfterCloseAreErrors(t *testing.T) {
	store := embedded.New(embedded.Config{})
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1)), OnUnavailable: limiter.Allow})
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Decide(t.Context(), t0, take("a", "m", "rpm", 1), new(limiter.Decision)); !errors.Is(err, limiter.ErrClosed) {
		t.Errorf("got %v, want ErrClosed: a closed store is never a reason to admit", err)
	}
}

func TestLease(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System:   set(t, limiter.PerMinute("tpm", 100)),
		Entities: map[string]limiter.StaticEntity{"key": {Parent: "org", Cascade: true}},
	})
	look := func(want ...string) {
		t.Helper()
		wantBrief(t, decide(t, l, t0, take("key", "m", "tpm", 0)), append([]string{"admitted=true none retry=0s"}, want...)...)
	}
	lease, _, err := l.Acquire(t.Context(), t0, take("key", "m", "tpm", 50))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name string
		do   func() error
		err  error
		left string
	}{
		{"more was used", func() error { return lease.Adjust(t.Context(), t0, map[string]int64{"tpm": 20_000}) }, nil, "30"},
		{"less was used", func() error { return lease.Release(t.Context(), t0, map[string]int64{"tpm": 40_000}) }, nil, "70"},
		{"more than held", func() error { return lease.Release(t.Context(), t0, map[string]int64{"tpm": 40_000}) }, limiter.ErrInvalid, "70"},
		{"unknown limit", func() error { return lease.Adjust(t.Context(), t0, map[string]int64{"rpm": 1}) }, limiter.ErrInvalid, "70"},
		{"rollback", func() error { return lease.Rollback(t.Context(), t0) }, nil, "100"},
		{"after rollback", func() error { return lease.Adjust(t.Context(), t0, map[string]int64{"tpm": 1}) }, limiter.ErrClosed, "100"},
		{"twice", func() error { return lease.Rollback(t.Context(), t0) }, limiter.ErrClosed, "100"},
	}
	for _, s := range steps {
		if err := s.do(); !errors.Is(err, s.err) {
			t.Errorf("%s: got %v, want %v", s.name, err, s.err)
		}
		look("key/m tpm "+s.left+" left exceeded=false", "org/m tpm "+s.left+" left exceeded=false")
	}
	denied, d, err := l.Acquire(t.Context(), t0, take("key", "m", "tpm", 101))
	if err != nil || denied != nil || d.Reason != limiter.ReasonExceedsCapacity {
		t.Errorf("denied: got lease %v, decision %v, error %v", denied, brief(d), err)
	}
}
