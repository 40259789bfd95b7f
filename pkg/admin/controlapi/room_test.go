package controlapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitsNamed returns limits whose names are a prefix and a number.
func limitsNamed(prefix string, n int) []limiter.Limit {
	all := make([]limiter.Limit, n)
	for i := range all {
		all[i] = limiter.PerDay(fmt.Sprintf("%s%d", prefix, i), 1)
	}
	return all
}

// bodyOf writes limits as a body.
func bodyOf(limits []limiter.Limit, more string) string {
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = fmt.Sprintf("%q: %q", l.Name, "1/day")
	}
	return `{"limits": {` + strings.Join(all, ", ") + "}" + more + "}"
}

// emptyStore returns a store in memory.
func emptyStore(t *testing.T) *embedded.Store {
	t.Helper()
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

// crowdedServer serves a limiter with nine limits of the system, and eight of a plan and of an entity.
func crowdedServer(t *testing.T, store controlapi.Store) http.Handler {
	t.Helper()
	setOf := func(all []limiter.Limit) *limiter.Limits {
		set, err := limiter.NewLimits(all...)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	static := limiter.Static{
		System: setOf(limitsNamed("s", 9)), Plans: map[string]*limiter.Limits{"big": setOf(limitsNamed("p", 8)), "small": setOf(limitsNamed("p", 7))},
		Entities: map[string]limiter.StaticEntity{"org/a": {Limits: map[string]*limiter.Limits{"up": setOf(limitsNamed("e", 7))}}},
	}
	snapshot, err := limiter.NewSnapshot(static)
	if err != nil {
		t.Fatal(err)
	}
	file := fileInForce(t)
	file.Static = static
	a, err := controlapi.New(controlapi.Config{Store: store, Now: time.Now, Sources: controlapi.Sources{
		File:    func() *controlapi.File { return file },
		Dropped: snapshot.Dropped,
		Names: func() map[string]bool {
			names := make(map[string]bool)
			snapshot.AddNames(names)
			return names
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	return mux
}

// A change is refused after which a bucket has no room for a limit that counts.
func TestFullBucketRefusesNames(t *testing.T) {
	mux := crowdedServer(t, emptyStore(t))
	const (
		ns   = "/v1/namespaces/default"
		user = ns + "/limits/entities/user%2Fada/"
	)
	for i, test := range []struct {
		method, target, body string
		code                 int
		want                 string
	}{
		{http.MethodPut, user + "r", bodyOf(limitsNamed("n", 7), ""), 201, "n0"},
		{http.MethodPut, user + "r", bodyOf(limitsNamed("n", 8), ""), 422, "entity user/ada, for resource r: there would be 17 limits, and a bucket has at most 16, so that s8 of system (file) would not count; give fewer names"},
		{http.MethodPut, user + "r?allowNew=true&dryRun=true", bodyOf(limitsNamed("n", 9), ""), 422, "s7 of system (file), s8 of system (file) would not count"},
		{http.MethodPut, user + "r", bodyOf(limitsNamed("n", 12), `, "inherit": false`), 200, "n11"},
		{http.MethodPut, user + "r", bodyOf(limitsNamed("n", 12), ""), 422, "s8 of system (file)"},
		{http.MethodPut, user + "_default_", bodyOf(limitsNamed("n", 7), ""), 201, "n0"},
		{http.MethodPut, ns + "/limits/resources/r", bodyOf(limitsNamed("x", 1), ""), 201, "x0"},
		{http.MethodDelete, user + "r", "", 422, "entity user/ada, for resource r: there would be 17 limits"}, // it stood alone
		{http.MethodDelete, ns + "/limits/resources/r", "", 200, "x0"},
		{http.MethodDelete, user + "r", "", 200, "n11"},
		{http.MethodPut, user + "r", bodyOf(limitsNamed("m", 1), ""), 422, "s8 of system (file)"},
		{http.MethodPut, user + "r", bodyOf(limitsNamed("s", 1), ""), 201, "s0"},
		{http.MethodDelete, user + "r", "", 200, "s0"},
		{http.MethodDelete, user + "_default_", "", 200, "n0"},
		{http.MethodPut, ns + "/limits/system", bodyOf(limitsNamed("x", 1), ""), 422, "entity org/a, for resource up: there would be 17 limits"},
		{http.MethodPut, ns + "/entities/user%2Fada", `{"plan": "big"}`, 422, "entity user/ada, for a resource without its own: there would be 17 limits"},
		{http.MethodPut, ns + "/entities/user%2Fada", `{"plan": "small"}`, 201, "small"},
		{http.MethodPut, ns + "/entities/user%2Fada", `{"plan": "small", "name": "n"}`, 200, "small"},
		{http.MethodPut, ns + "/limits/resources/r", bodyOf(limitsNamed("x", 1), ""), 422, "entity user/ada, for resource r: there would be 17 limits"},
		{http.MethodPut, ns + "/limits/resources/r", bodyOf(limitsNamed("p", 7), ""), 201, "p0"},
		{http.MethodPut, ns + "/limits/entities/user%2Fbob/_default_", bodyOf(limitsNamed("n", 1), ""), 422, "entity user/bob, for resource r: there would be 17 limits"},
		{http.MethodPut, ns + "/limits/entities/key%2Fk/_default_", bodyOf(limitsNamed("n", 1), ""), 201, "n0"}, // no rule takes from keys for r
		{http.MethodPut, ns + "/limits/entities/key%2Fk/r", bodyOf(limitsNamed("m", 1), ""), 422, "entity key/k, for resource r"},
		{http.MethodPut, ns + "/entities/user%2Fchild", `{"parent": "key/other", "cascade": true}`, 201, "key/other"},
		{http.MethodPut, ns + "/limits/entities/key%2Fother/_default_", bodyOf(limitsNamed("n", 1), ""), 422, "entity key/other, for resource r"},
	} {
		target := test.target
		if test.method == http.MethodPut && !strings.Contains(target, "?") {
			target += "?allowNew=true"
		}
		r := httptest.NewRequestWithContext(t.Context(), test.method, target, strings.NewReader(test.body))
		if test.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		got := httptest.NewRecorder()
		mux.ServeHTTP(got, r)
		if got.Code != test.code || !strings.Contains(got.Body.String(), test.want) {
			t.Errorf("%d: %s %s: %d %s; want %d %s", i, test.method, test.target, got.Code, got.Body, test.code, test.want)
		}
	}
}

// getCounter counts the records that are read one by one, and those of lists.
type getCounter struct {
	*embedded.Store

	gets, listed int
}

func (c *getCounter) ListLimits(ctx context.Context, namespace string, f limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	page, err := c.Store.ListLimits(ctx, namespace, f, p)
	c.listed += len(page.Items)
	return page, err
}

func (c *getCounter) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	c.gets++
	return c.Store.Get(ctx, namespace, ref)
}

// A change reads no record of each of many resources and entities, if there is room. One of an entity lists no others:
// a manifest has very many.
func TestRoomReadsPages(t *testing.T) {
	store := &getCounter{Store: emptyStore(t)}
	mux := crowdedServer(t, store)
	put := func(path, name string) (gets int) {
		before := store.gets
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v1/namespaces/default/limits/"+path+"?allowNew=true", strings.NewReader(bodyOf(limitsNamed(name, 1), "")))
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		if mux.ServeHTTP(got, r); got.Code >= 300 {
			t.Fatalf("%s: %d %s", path, got.Code, got.Body)
		}
		return store.gets - before
	}
	for i := range limiter.MaxPage + 1 {
		put(fmt.Sprintf("entities/user%%2F%d/r%d", i, i), "s")
	}
	for i := range 20 {
		put(fmt.Sprintf("resources/r%d", i), "x")
	}
	for _, path := range []string{"entities/user%2F0/_default_", "resources/r0", "system"} {
		if gets := put(path, "s"); gets > 10 {
			t.Errorf("%s: %d records are read one by one", path, gets)
		}
	}
	store.listed = 0
	put("entities/user%2F0/_default_", "s")
	if store.listed > 30 {
		t.Errorf("a change of an entity lists %d limits", store.listed)
	}
}
