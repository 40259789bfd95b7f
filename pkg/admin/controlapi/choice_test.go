package controlapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/client"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// choosing is a service whose store has buckets of several variants, and a client of it.
type choosing struct {
	t     *testing.T
	store *embedded.Store
	n     *client.Namespace
}

func newChoosing(t *testing.T, inMemory bool) *choosing {
	t.Helper()
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	a, err := controlapi.New(controlapi.Config{Store: store, Buckets: store, Now: time.Now, InMemory: inMemory, Sources: controlapi.Sources{
		Variants: func(string) map[uint64]string { return map[uint64]string{7: "plan free"} },
		Effective: func(context.Context, string, string, string, ...limiter.Stored) ([]limiter.EffectiveLimit, error) {
			return []limiter.EffectiveLimit{{Limit: limiter.PerDay("rpd", 10), Source: limiter.SourceSystemConfig}}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	return &choosing{t, store, client.New(doer{mux}, "http://localhost").Namespace("default")}
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
	return c.n.AdjustBucket(c.t.Context(), "reset", change, client.Options{})
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
	if b, err := c.n.Bucket(t.Context(), client.BucketOf{Entity: "user/ada", Resource: "api", Variant: "0000000000000007"}); err != nil || b.Source != "plan free" || b.Limits[0].FullAt.IsZero() {
		t.Errorf("one bucket: %+v, %v", b, err)
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
		disabled, err := c.n.Disable(t.Context(), client.Subject{Entity: "e"}, client.Options{})
		if err != nil || disabled.InMemory != inMemory {
			t.Errorf("disabling: %+v, %v; want %v", disabled, err, inMemory)
		}
		entity, err := c.n.PutEntity(t.Context(), api.Entity{ID: "e"}, client.Options{})
		if err != nil || entity.InMemory != inMemory {
			t.Errorf("an entity: %+v, %v; want %v", entity, err, inMemory)
		}
		namespace, err := c.n.Delete(t.Context(), client.Options{})
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
	_, err = c.n.AdjustBucket(t.Context(), "reset", api.BucketChange{Entity: "user/eve", Resource: "api", Once: "k"}, client.Options{})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Type != api.Reused {
		t.Errorf("for another bucket: %v", err)
	}
}
