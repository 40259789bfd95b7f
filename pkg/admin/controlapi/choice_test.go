package controlapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// choosing is a service whose store has buckets of several variants, and a client of it.
type choosing struct {
	t       *testing.T
	store   *embedded.Store
	n       *api.NamespaceClient
	inForce []limiter.EffectiveLimit
}

func newChoosing(t *testing.T, inMemory bool) *choosing {
	t.Helper()
	return newChoosingOf(t, inMemory, func(b limiter.Buckets) limiter.Buckets { return b })
}

// unlisted is a store whose list has no bucket yet.
type unlisted struct{ limiter.Buckets }

func (unlisted) ListBuckets(context.Context, time.Time, string, limiter.BucketFilter, limiter.Page) (limiter.PageOf[limiter.BucketState], error) {
	return limiter.PageOf[limiter.BucketState]{}, nil
}

// A bucket that the list of a fleet does not have yet is found, also that of a plan.
func TestNewBucketsAreFound(t *testing.T) {
	c := newChoosingOf(t, false, func(b limiter.Buckets) limiter.Buckets { return unlisted{b} })
	if _, err := c.reset(api.BucketChange{}); err == nil || !strings.Contains(err.Error(), "none is in use") {
		t.Errorf("no bucket: %v", err)
	}
	one := api.Tokens(limiter.Milli)
	beyond := api.BucketChange{Entity: "user/ada", Resource: "api", Tokens: &one, Excess: api.Beyond}
	if _, err := c.n.AdjustBucket(t.Context(), "top-up", beyond, api.ClientOptions{}); err == nil || !strings.Contains(err.Error(), "nothing was booked: make it again after a request") {
		t.Errorf("an extra of no bucket: %v", err)
	}
	c.use("rpd", 7)
	if done, err := c.reset(api.BucketChange{}); err != nil || done.Result != api.Changed || done.After.Variant != "0000000000000007" {
		t.Errorf("the only bucket: %+v, %v", done, err)
	}
	c.use("rpd", 0)
	if _, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: "user/ada", Resource: "api"}); err == nil || !strings.Contains(err.Error(), "0000000000000007 of plan free") {
		t.Errorf("two buckets: %v", err)
	}
}

// A bucket of a rule in shadow mode alone is named: it needs its variant.
func TestABucketOfAShadowIsNamed(t *testing.T) {
	c := newChoosing(t, false)
	c.use("rpd", limiter.ShadowVariants|5)
	key := limiter.BucketKey{Variant: limiter.ShadowVariants | 5}
	if _, err := c.reset(api.BucketChange{}); err == nil || !strings.Contains(err.Error(), "no bucket in force") || !strings.Contains(err.Error(), key.VariantText()) || strings.Contains(err.Error(), "full") {
		t.Errorf("a bucket of a shadow rule alone: %v", err)
	}
	if done, err := c.reset(api.BucketChange{Variant: key.VariantText()}); err != nil || done.Result != api.Changed {
		t.Errorf("by its variant: %+v, %v", done, err)
	}
}

func newChoosingOf(t *testing.T, inMemory bool, buckets func(limiter.Buckets) limiter.Buckets) *choosing {
	t.Helper()
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	chosen := &choosing{t: t, store: store, inForce: []limiter.EffectiveLimit{{Limit: limiter.PerDay("rpd", 10), Source: limiter.SourceSystemConfig}}}
	a, err := controlapi.New(controlapi.Config{Store: store, Buckets: buckets(store), Now: time.Now, InMemory: inMemory, Sources: controlapi.Sources{
		Variants: func(string) map[uint64]string { return map[uint64]string{7: "plan free", 8: "rule uploads"} },
		Effective: func(context.Context, string, string, string, ...limiter.Stored) ([]limiter.EffectiveLimit, error) {
			return chosen.inForce, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	chosen.n = api.NewClient(doer{mux}, "http://localhost").Namespace("default")
	return chosen
}

// doer answers requests in this process.
type doer struct{ http.Handler }

func (d doer) Do(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w.Result(), nil
}

// use takes 4 of 10 tokens of a limit of a bucket of user/ada for api.
func (c *choosing) use(limit string, variant uint64) {
	c.t.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay(limit, 10))
	if err != nil {
		c.t.Fatal(err)
	}
	op := limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: "user/ada", Resource: "api", Variant: variant}, Limits: limits, Spends: []limiter.Spend{{Limit: limit, Take: 4 * limiter.Milli}}}
	if admitted, err := c.store.Take(c.t.Context(), time.Now(), []limiter.Op{op}); !admitted || err != nil {
		c.t.Fatal(admitted, err)
	}
}

func (c *choosing) reset(change api.BucketChange) (*api.Adjusted, error) {
	change.Entity, change.Resource = "user/ada", "api"
	return c.n.AdjustBucket(c.t.Context(), "reset", change, api.ClientOptions{})
}

// A bucket is read and changed by its names in full, also where the store keeps them shortened.
func TestLongNamesOfBuckets(t *testing.T) {
	c := newChoosing(t, false)
	entity, resource := "key/"+strings.Repeat("k", 300), "path/"+strings.Repeat("r", 300)
	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 10))
	if err != nil {
		t.Fatal(err)
	}
	op := limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: resource, Variant: 7}, Limits: limits, Spends: []limiter.Spend{{Limit: "rpd", Take: 4 * limiter.Milli}}}
	if admitted, err := c.store.Take(t.Context(), time.Now(), []limiter.Op{op}); !admitted || err != nil {
		t.Fatal(admitted, err)
	}
	b, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: api.Name(entity), Resource: api.Name(resource)})
	if err != nil || string(b.Entity) != entity || string(b.Resource) != resource {
		t.Errorf("read: %+v, %v", b, err)
	}
	done, err := c.n.AdjustBucket(t.Context(), "reset", api.BucketChange{Entity: api.Name(entity), Resource: api.Name(resource)}, api.ClientOptions{})
	if err != nil || done.Result != api.Changed || done.After.Variant != "0000000000000007" {
		t.Errorf("reset: %+v, %v", done, err)
	}
}

// A change without a variant is for the only bucket, of any variant. Where there are several
// buckets it is refused, with the choices.
func TestBucketsAreFound(t *testing.T) {
	c := newChoosing(t, false)
	c.use("rpd", 7)
	if done, err := c.reset(api.BucketChange{}); err != nil || done.Result != api.Changed || done.After.Variant != "0000000000000007" {
		t.Fatalf("the only bucket: %+v, %v", done, err)
	}
	c.use("rpd", limiter.ShadowVariants|5)
	if done, err := c.reset(api.BucketChange{}); err != nil || done.After.Variant != "0000000000000007" {
		t.Fatalf("the only bucket beside that of a shadow: %+v, %v", done, err)
	}
	c.use("rpd", 7)
	c.use("rpd", 0)
	c.use("upd", 9)
	_, err := c.reset(api.BucketChange{})
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Type != api.Ambiguous || p.Status != http.StatusConflict {
		t.Fatalf("three buckets: %v", err)
	}
	got := make([]string, 0, 3)
	for _, b := range p.Choices {
		got = append(got, b.Variant+" "+cmp.Or(b.Source, b.Limits[0].Source))
	}
	if want := []string{api.OrdinaryVariant + " system (file)", "0000000000000007 plan free", "0000000000000009 "}; !slices.Equal(got, want) {
		t.Errorf("choices %q, want %q", got, want)
	}
	for _, text := range []string{"0000000000000007 of plan free (rpd 10/day has 6)", "0000000000000009 (upd 10/day has 6)"} {
		if !strings.Contains(p.Detail, text) {
			t.Errorf("the detail lacks %q: %s", text, p.Detail)
		}
	}
	if done, err := c.reset(api.BucketChange{Limit: "upd"}); err != nil || done.After.Variant != "0000000000000009" {
		t.Errorf("the only bucket with the limit: %+v, %v", done, err)
	}
	if done, err := c.reset(api.BucketChange{Variant: api.OrdinaryVariant}); err != nil || done.After.Variant != "" {
		t.Errorf("the ordinary bucket: %+v, %v", done, err)
	}
	if b, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: "user/ada", Resource: "api", Variant: "0000000000000007"}); err != nil || b.Source != "plan free" || b.Limits[0].FullAt.IsZero() {
		t.Errorf("one bucket: %+v, %v", b, err)
	}
}

// A request in flight has its place in two quarters, which can be in two buckets. Without a
// variant the first is read, and both are changed.
func TestBucketsOfRequestsInFlight(t *testing.T) {
	c := newChoosing(t, false)
	l, err := limiter.New(limiter.Config{Store: c.store})
	if err != nil {
		t.Fatal(err)
	}
	slots, err := limiter.NewLimits(limiter.Concurrent("slots", 3, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetStatic(t.Context(), limiter.Static{System: slots}); err != nil {
		t.Fatal(err)
	}
	begin := func() bool {
		var d limiter.Decision
		req := &limiter.Request{Takes: []limiter.Take{{Entity: "user/ada", Resource: "api", Consume: []limiter.Consumption{{Limit: "slots", Amount: limiter.Milli}}}}}
		if err := l.Decide(t.Context(), time.Now(), req, &d); err != nil {
			t.Fatal(err)
		}
		return d.Admitted
	}
	for round := range 2 { // the second reset repeats the first one
		for begin() { // until all places are taken
		}
		b, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: "user/ada", Resource: "api"})
		if err != nil || *b.Limits[0].Available != 0 || !b.Limits[0].InFlight || !b.Window.Start.Before(time.Now()) {
			t.Fatalf("the bucket of the present window: %+v, %v", b, err)
		}
		if _, err := c.reset(api.BucketChange{Once: strings.Repeat("x", limiter.MaxOnce)}); err != nil {
			t.Fatal(err)
		}
		if begins := begin(); begins != (round == 0) {
			t.Errorf("reset %d: a request begins %v", round, begins)
		}
	}
}

// A limit that was changed since the last request is shown and set by its present number.
func TestSetAfterAChangedLimit(t *testing.T) {
	for name, of := range map[string]func(n int64) limiter.Limit{
		"quota": func(n int64) limiter.Limit {
			return limiter.Quota("q", n, limiter.Calendar{Unit: limiter.CalendarMonth})
		},
		"refills": func(n int64) limiter.Limit { return limiter.Custom("q", n, 1, 366*24*time.Hour) }, // none within the test
	} {
		t.Run(name, func(t *testing.T) { setAfterAChange(t, of) })
	}
}

func setAfterAChange(t *testing.T, of func(n int64) limiter.Limit) {
	t.Helper()
	c := newChoosing(t, false)
	l, err := limiter.New(limiter.Config{Store: c.store})
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int64) {
		limits, err := limiter.NewLimits(of(n))
		if err == nil {
			err = l.SetStatic(t.Context(), limiter.Static{System: limits})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.inForce = []limiter.EffectiveLimit{{Limit: of(n), Source: limiter.SourceSystemConfig}}
	}
	take := func(n int64) bool {
		var d limiter.Decision
		req := &limiter.Request{Takes: []limiter.Take{{Entity: "user/ada", Resource: "api", Consume: []limiter.Consumption{{Limit: "q", Amount: n * limiter.Milli}}}}}
		if err := l.Decide(t.Context(), time.Now(), req, &d); err != nil {
			t.Fatal(err)
		}
		return d.Admitted
	}
	set := func(n api.Tokens) (*api.Adjusted, error) {
		return c.n.AdjustBucket(t.Context(), "set", api.BucketChange{Entity: "user/ada", Resource: "api", Tokens: &n}, api.ClientOptions{})
	}
	put(1000)
	if !take(600) {
		t.Fatal("600 of 1000 denied")
	}
	for _, number := range []int64{100, 1000} {
		put(number)
		done, err := set(50 * limiter.Milli)
		if want := api.Tokens(50 * limiter.Milli); err != nil || *done.After.Limits[0].Available != want {
			t.Fatalf("%d: after %v, %v; want %v", number, done.After, err, want)
		}
		b, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: "user/ada", Resource: "api"})
		if err != nil || *b.Limits[0].Available != 50*limiter.Milli {
			t.Fatalf("%d: the bucket has %+v, %v", number, b, err)
		}
		list, err := c.n.ListBuckets(t.Context(), api.LimitsOf{}, api.Page{})
		if err != nil || len(list.Items) != 1 || *list.Items[0].Limits[0].Available != 50*limiter.Milli || list.Items[0].Limits[0].Limit.String() != b.Limits[0].Limit.String() {
			t.Fatalf("%d: the list has %+v, %v; the bucket %+v", number, list, err, b)
		}
		if take(51) || !take(50) || take(1) {
			t.Errorf("%d: set to 50, it has more or less", number)
		}
		if _, err := set(api.Tokens(number+1) * limiter.Milli); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at most %d tokens", number)) {
			t.Errorf("%d: set above it: %v", number, err)
		}
	}
}

// An answer to a change says whether the change ends with the process.
func TestChangesInMemory(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		c := newChoosing(t, inMemory)
		c.use("rpd", 0)
		adjusted, err := c.reset(api.BucketChange{})
		if err != nil || adjusted.InMemory != inMemory {
			t.Errorf("a reset: %+v, %v; want %v", adjusted, err, inMemory)
		}
		if text, err := json.Marshal(adjusted); err != nil || strings.Contains(string(text), `"in_memory":true`) != inMemory {
			t.Errorf("a reset as JSON: %s, %v; want %v", text, err, inMemory)
		}
		disabled, err := c.n.Disable(t.Context(), api.Subject{Entity: "e"}, api.ClientOptions{})
		if err != nil || disabled.InMemory != inMemory {
			t.Errorf("disabling: %+v, %v; want %v", disabled, err, inMemory)
		}
		entity, err := c.n.PutEntity(t.Context(), api.Entity{ID: "e"}, api.ClientOptions{})
		if err != nil || entity.InMemory != inMemory {
			t.Errorf("an entity: %+v, %v; want %v", entity, err, inMemory)
		}
		namespace, err := c.n.Delete(t.Context(), api.ClientOptions{})
		if err != nil || namespace.InMemory != inMemory {
			t.Errorf("a namespace: %+v, %v; want %v", namespace, err, inMemory)
		}
	}
}

// A repeated text of once is reported, even for a bucket that is not in use. For another bucket it
// is refused.
func TestRepeatedWithoutABucket(t *testing.T) {
	c := newChoosing(t, false)
	c.use("rpd", 7)
	if done, err := c.reset(api.BucketChange{Once: "k"}); err != nil || done.Result != api.Changed {
		t.Fatalf("%+v, %v", done, err)
	}
	// There is no bucket of the other variant.
	done, err := c.reset(api.BucketChange{Once: "k", Variant: api.OrdinaryVariant})
	if err != nil || done.Result != api.Repeated || done.After != nil || done.First == nil || done.First.Verb != "reset" {
		t.Errorf("repeated: %+v, %v", done, err)
	}
	_, err = c.n.AdjustBucket(t.Context(), "reset", api.BucketChange{Entity: "user/eve", Resource: "api", Once: "k"}, api.ClientOptions{})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Type != api.Reused {
		t.Errorf("for another bucket: %v", err)
	}
}

// A limit that comes before those of a bucket's rule or plan has its own source there.
func TestALimitBeforeThoseOfARuleHasItsSource(t *testing.T) {
	for _, tt := range []struct {
		variant uint64
		source  limiter.Source
		want    string
	}{
		{7, limiter.SourceEntity, "entity (stored)"},
		{7, limiter.SourceEntityDefault, "entity default (stored)"},
		{7, limiter.SourceSystemConfig, ""},
		{8, limiter.SourceEntityConfig, "entity (file)"},
		{8, limiter.SourceEntityDefaultConfig, ""},
		{9, limiter.SourceEntity, ""}, // of a call
		{0, limiter.SourceSystemConfig, "system (file)"},
	} {
		c := newChoosing(t, false)
		c.inForce = []limiter.EffectiveLimit{{Limit: limiter.PerDay("rpd", 10), Source: tt.source}}
		c.use("rpd", tt.variant)
		b, err := c.n.Bucket(t.Context(), api.BucketOf{Entity: "user/ada", Resource: "api"})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Limits[0].Source; got != tt.want {
			t.Errorf("variant %d under a limit of %v has the source %q, want %q", tt.variant, tt.source, got, tt.want)
		}
	}
}
