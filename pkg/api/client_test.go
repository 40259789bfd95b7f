package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
)

// serve returns the address of a service without access control.
func serve() (address string, stop func(), err error) {
	store := embedded.New(embedded.Config{})
	a, err := controlapi.New(controlapi.Config{Store: store, Now: time.Now})
	if err != nil {
		return "", nil, err
	}
	var mux http.ServeMux
	for _, route := range a.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	server := httptest.NewServer(&mux)
	return server.URL, func() {
		server.Close()
		_ = store.Close(context.Background())
	}, nil
}

func Example() {
	address, stop, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	n := api.NewClient(http.DefaultClient, address).Namespace("default")
	change, err := n.PutLimits(ctx, api.LimitsOf{Entity: "org/acme"}, api.Limits{Limits: map[string]api.Limit{"rpm": {Rate: "600/minute"}}}, api.ClientOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(change.Result)
	_, err = n.DeleteLimits(ctx, api.LimitsOf{Resource: "gpt-4"}, api.ClientOptions{})
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		fmt.Println(problem.Status, problem.Type)
	}
	// Output:
	// created
	// 404 urn:ratelimit:problem:not-found
}

// A list yields the items of all pages, for any size of pages and any names.
func TestEach(t *testing.T) {
	address, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	n := api.NewClient(http.DefaultClient, address+"/").Namespace("a/b")
	want := []string{".", "..", "a b", "a%2Fb", "a/b", "k?#", "k\xff"}
	for _, id := range want {
		if _, err := n.PutEntity(t.Context(), api.Entity{ID: api.Name(id)}, api.ClientOptions{AllowNew: true}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for e, err := range api.Each(func(p api.Page) (*api.List[api.Entity], error) {
		p.Size = 2
		return n.ListEntities(t.Context(), "", p)
	}) {
		if err != nil {
			t.Fatal(err)
		}
		one, err := n.Entity(t.Context(), e.ID)
		if err != nil || one.ETag != e.ETag {
			t.Errorf("%s: %+v, %v", e.ID, one, err)
		}
		got = append(got, string(e.ID))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A list whose pages go round ends with an error.
func TestEachEnds(t *testing.T) {
	asked := 0
	var got []string
	for v, err := range api.Each(func(api.Page) (*api.List[string], error) {
		if asked++; asked > 3 {
			t.Fatal("the same page is asked for again and again")
		}
		return &api.List[string]{Items: []string{"a"}, Next: "x"}, nil
	}) {
		if err != nil {
			v = "error"
		}
		got = append(got, v)
	}
	if want := "a a error"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Answers of another server are errors that say so.
func TestStrangers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") },
		"another 500":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusInternalServerError) },
		"a redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/status", http.StatusFound) },
		"half an item": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") },
	} {
		server := httptest.NewServer(answer)
		if s, err := api.NewClient(http.DefaultClient, server.URL).Status(t.Context()); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
		server.Close()
	}
}

// JSON of another server is no answer: no list, no change that was made, and no purge that goes on.
func TestStrangersWithJSON(t *testing.T) {
	for _, text := range []string{"{}", "null", `{"status": "ok"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}))
		c := api.NewClient(http.DefaultClient, server.URL)
		n := c.Namespace("default")
		for name, ask := range map[string]func() error{
			"a list":    func() error { _, err := n.ListEntities(t.Context(), "", api.Page{}); return err },
			"an entity": func() error { _, err := n.PutEntity(t.Context(), api.Entity{ID: "a"}, api.ClientOptions{}); return err },
			"limits":    func() error { _, err := n.DeleteLimits(t.Context(), api.LimitsOf{}, api.ClientOptions{}); return err },
			"a balance": func() error {
				_, err := n.AdjustBucket(t.Context(), "reset", api.BucketChange{}, api.ClientOptions{})
				return err
			},
			"a switch": func() error { _, err := n.Disable(t.Context(), api.Subject{}, api.ClientOptions{}); return err },
			"a state":  func() error { _, err := n.Delete(t.Context(), api.ClientOptions{}); return err },
			"a purge":  func() error { _, err := n.Purge(t.Context()); return err },
			"a status": func() error { _, err := c.Status(t.Context()); return err },
			"a record": func() error { _, err := n.Entity(t.Context(), "a"); return err },
		} {
			if err := ask(); err == nil || !strings.Contains(err.Error(), "does not answer like this service") {
				t.Errorf("%s, %s: %v", name, text, err)
			}
		}
		server.Close()
	}
}
