package manifest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// site is a service, and the requests that it gets.
type site struct {
	*api.NamespaceClient

	requests, writes atomic.Int64
	before           func(*http.Request) error // of each request; nil = nothing
	fails            int64                     // the write that fails; 0 = none
}

func (s *site) Do(req *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	if req.Method != http.MethodGet && req.URL.Query().Get("dryRun") == "" {
		if n := s.writes.Add(1); n == s.fails {
			return nil, errCut
		}
	}
	if s.before != nil {
		if err := s.before(req); err != nil {
			return nil, err
		}
	}
	return http.DefaultClient.Do(req)
}

// errCut is the error of a request that fails.
var errCut = errors.New("the line is cut") //nolint:gochecknoglobals // an error

func newSite(t *testing.T) *site {
	t.Helper()
	store := embedded.New(embedded.Config{})
	snapshot, err := limiter.NewSnapshot(limiter.Static{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := controlapi.New(controlapi.Config{Store: store, Now: time.Now, Sources: controlapi.Sources{Dropped: snapshot.Dropped}})
	if err != nil {
		t.Fatal(err)
	}
	var mux http.ServeMux
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, http.MaxBytesHandler(route.Handler, route.MaxBody))
	}
	server := httptest.NewServer(&mux)
	t.Cleanup(func() {
		server.Close()
		_ = store.Close(context.Background())
	})
	s := new(site)
	s.NamespaceClient = api.NewClient(s, server.URL).Namespace("default")
	return s
}

// apply applies a manifest and returns the changes, one a line.
func (s *site) apply(t *testing.T, text string, o Options) (string, error) {
	t.Helper()
	m, problems := Parse([]Source{{Name: "m.yaml", Data: []byte(text)}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := NewPlan(t.Context(), s.NamespaceClient, m, o)
	var done, of int
	progress := func(d, size int) { done, of = d, size }
	if err == nil {
		err = p.Check(t.Context(), progress)
	}
	if err != nil {
		return "", err
	}
	if done != p.Size() || of != p.Size() {
		t.Errorf("%d of %d changes are checked, want %d", done, of, p.Size())
	}
	err = p.Apply(t.Context(), progress)
	var lines []string
	for _, c := range p.Changes {
		if !c.Makes() || c.Done {
			lines = append(lines, strings.TrimSuffix(Subject(c.Ref)+" "+string(c.Result)+": "+c.Why, ": "))
		}
	}
	return strings.Join(lines, "\n"), err
}

func (s *site) want(t *testing.T, text string, o Options, want ...string) {
	t.Helper()
	got, err := s.apply(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("apply of %s\n%s", text, diff)
	}
}

const shop = `{manifest: shop, limits: {system: {rpm: 1/minute}, entities: {a: {name: A, limits: {_default_: {rpm: {rate: 2/minute, budget: {day: 9}}}}}, b: {parent: a}}}}`

// A manifest creates, changes, and repeats nothing; prune deletes the records that left it,
// limits first.
func TestApply(t *testing.T) {
	s := newSite(t)
	s.want(t, shop, Options{}, "entity a created", "entity b created", "limits of the system created", "limits of entity a created")
	before := s.writes.Load()
	s.want(t, shop, Options{Prune: true}, "entity a unchanged", "entity b unchanged", "limits of the system unchanged", "limits of entity a unchanged")
	if n := s.writes.Load() - before; n != 0 {
		t.Errorf("the same manifest again wrote %d times", n)
	}
	const less = `{manifest: shop, limits: {system: {rpm: 3/minute}}}`
	s.want(t, less, Options{}, "limits of the system changed")
	s.want(t, less, Options{Prune: true}, "limits of the system unchanged", "limits of entity a deleted", "entity b deleted", "entity a deleted")
	s.want(t, "manifest: shop", Options{Prune: true}, "limits of the system deleted")
	if list, err := s.ListEntities(t.Context(), "", api.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("at the end there are %+v, %v", list.Items, err)
	}
}

// Prune deletes no record that others made or changed, and none that holds such a
// record.
func TestKept(t *testing.T) {
	s := newSite(t)
	put := func(of api.LimitsOf, rate string) {
		t.Helper()
		if _, err := s.PutLimits(t.Context(), of, api.Limits{Limits: map[string]api.Limit{"rpm": {Rate: rate}}}, api.ClientOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(api.LimitsOf{Resource: "others"}, "9/minute")
	if _, err := s.apply(t, shop, Options{}); err != nil {
		t.Fatal(err)
	}
	put(api.LimitsOf{}, "7/minute")
	put(api.LimitsOf{Entity: "a", Resource: "gpt"}, "8/minute")
	s.want(t, "manifest: shop", Options{Prune: true}, "limits of entity a deleted", "limits of the system kept: it was changed since the manifest was applied",
		"entity b deleted", "entity a kept: its deletion would delete the limits of entity a for resource gpt")
	put(api.LimitsOf{}, "1/minute") // as the manifest had it
	if _, err := s.DeleteLimits(t.Context(), api.LimitsOf{Entity: "a", Resource: "gpt"}, api.ClientOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want(t, "manifest: shop", Options{Prune: true}, "limits of the system deleted", "entity a deleted")
	if _, err := s.Limits(t.Context(), api.LimitsOf{Resource: "others"}); err != nil {
		t.Error("limits that were set by hand are gone:", err)
	}
}

// A record belongs to one manifest, and can be taken over.
func TestOwners(t *testing.T) {
	s := newSite(t)
	if _, err := s.apply(t, shop, Options{}); err != nil {
		t.Fatal(err)
	}
	const other = `{manifest: other, limits: {system: {rpm: 4/minute}}}`
	_, err := s.apply(t, other, Options{})
	if want := "m.yaml:1: limits of the system belongs to manifest shop"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	s.want(t, other, Options{TakeOver: true}, "limits of the system changed")
	s.want(t, `{manifest: shop, limits: {entities: {a: {name: A}}}}`, Options{Prune: true},
		"entity a unchanged", "limits of entity a deleted", "limits of the system kept: manifest other owns it too", "entity b deleted")
	s.want(t, other, Options{Prune: true}, "limits of the system unchanged")
}

// After a failure of any request, applying the same manifest again makes the missing
// records, and prune works.
func TestInterrupted(t *testing.T) {
	for failed := int64(1); ; failed++ {
		s := newSite(t)
		s.fails = failed
		_, err := s.apply(t, shop, Options{})
		s.fails = 0
		if err == nil {
			if failed < 5 {
				t.Errorf("only %d writes", failed-1)
			}
			return
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if _, err := s.apply(t, shop, Options{}); err != nil {
			t.Errorf("again after write %d failed: %v", failed, err)
		}
		s.want(t, "manifest: shop", Options{Prune: true}, "limits of entity a deleted", "limits of the system deleted", "entity b deleted", "entity a deleted")
	}
}

// A record that another changes meanwhile is not overwritten, and the error says so.
func TestConcurrentEdit(t *testing.T) {
	s := newSite(t)
	var edited atomic.Bool
	s.before = func(req *http.Request) error {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/system") && req.URL.Query().Get("dryRun") == "" && edited.CompareAndSwap(false, true) {
			_, err := s.PutLimits(context.WithoutCancel(req.Context()), api.LimitsOf{}, api.Limits{Limits: map[string]api.Limit{"rpm": {Rate: "5/minute"}}}, api.ClientOptions{})
			return err
		}
		return nil
	}
	_, err := s.apply(t, shop, Options{})
	if want := "limits of the system was changed by another while this command ran: run it again"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	l, err := s.Limits(t.Context(), api.LimitsOf{})
	if err != nil || l.Limits["rpm"].Rate != "5/minute" {
		t.Errorf("stored is %+v, %v", l, err)
	}
	if _, err := s.apply(t, shop, Options{}); err != nil {
		t.Error(err)
	}
}

// A change that the service refuses leaves everything as it was.
func TestRefused(t *testing.T) {
	s := newSite(t)
	if _, err := s.PutEntity(t.Context(), api.Entity{ID: "z", Parent: "a"}, api.ClientOptions{}); err != nil {
		t.Fatal(err)
	}
	before := s.writes.Load()
	_, err := s.apply(t, `{manifest: m, limits: {system: {rpm: 1/minute}, entities: {a: {parent: z}}}}`, Options{})
	if err == nil || !strings.Contains(err.Error(), "entity a: ") || s.writes.Load() != before {
		t.Errorf("got %v after %d writes, want a refusal of entity a after none", err, s.writes.Load()-before)
	}
}

// A manifest after which each bucket has room for its limits is applied, though a record of it would fill one beside
// the stored ones. One after which a bucket has no room is refused.
func TestRoomWithinAManifest(t *testing.T) {
	s := newSite(t)
	names := func(prefix string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%s%d: 1/day", prefix, i)
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	levels := func(system, resource string) string {
		return fmt.Sprintf("{manifest: m, limits: {system: %s, resources: {api: %s}}}", system, resource)
	}
	of := func(system, resource string) []string {
		return []string{"limits of the system " + system, "limits of resource api " + resource}
	}
	s.want(t, levels(names("a", 12), names("b", 4)), Options{}, of("created", "created")...)
	s.want(t, levels(names("a", 4), names("b", 12)), Options{}, of("changed", "changed")...)
	s.want(t, levels(names("a", 12), names("b", 4)), Options{}, of("changed", "changed")...)
	s.want(t, fmt.Sprintf("{manifest: m, limits: {system: %s}}", names("a", 16)), Options{Prune: true}, of("changed", "deleted")...)
	before := s.writes.Load()
	if _, err := s.apply(t, levels(names("a", 16), names("b", 1)), Options{}); !is(err, api.NoRoom) || s.writes.Load() != before {
		t.Errorf("17 names: got %v after %d writes, want a refusal after none", err, s.writes.Load()-before)
	}
}

// Thousands of records take a list of a page for each thousand, and an inventory in parts that
// the service takes.
func TestMany(t *testing.T) {
	const many = 1200 // more than a page of each list
	var text strings.Builder
	text.WriteString("manifest: many\nlimits:\n  entities:\n")
	for i := range many {
		fmt.Fprintf(&text, "    key/%08d-with-a-name-of-usual-length: {limits: {_default_: {rpm: %d/minute}}}\n", i, i+1)
	}
	s := newSite(t)
	if _, err := s.apply(t, text.String(), Options{}); err != nil {
		t.Fatal(err)
	}
	before := s.requests.Load()
	got, err := s.apply(t, text.String(), Options{Prune: true})
	if n := s.requests.Load() - before; err != nil || strings.Count(got, "unchanged") != 2*many || n > 12 {
		t.Errorf("the same again: %d unchanged by %d requests, %v", strings.Count(got, "unchanged"), n, err)
	}
	if got, err = s.apply(t, "manifest: many", Options{Prune: true}); err != nil || strings.Count(got, "deleted") != 2*many {
		t.Errorf("%d deleted, %v", strings.Count(got, "deleted"), err)
	}
}

// A manifest that is exported says the same.
func TestExport(t *testing.T) {
	s := newSite(t)
	if _, err := s.apply(t, shop, Options{}); err != nil {
		t.Fatal(err)
	}
	records, err := List(t.Context(), s.NamespaceClient)
	if err != nil {
		t.Fatal(err)
	}
	m, problems := Parse([]Source{{Name: "m", Data: []byte(shop)}})
	if diff := cmp.Diff(Contents(m.Records), Contents(records)); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
}
