package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// A namespace is deleted, and purged in steps until it is empty.
func ExampleNamespaceClient_Purge() {
	address, stop, err := serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	n := api.NewClient(http.DefaultClient, address).Namespace("tenant-a")
	if _, err := n.PutEntity(ctx, api.Entity{ID: "user/ada"}, api.ClientOptions{AllowNew: true}); err != nil {
		fmt.Println(err)
		return
	}
	change, err := n.Delete(ctx, api.ClientOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(change.Result, change.After.State)
	for done := false; !done; {
		slice, err := n.Purge(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		done = slice.Done
	}
	ns, err := n.Get(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ns.State)
	// Output:
	// deleted deleted
	// purged
}

// A namespace of any name is created, deleted and recovered, and is in one of two lists.
func TestNamespaces(t *testing.T) {
	address, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := api.NewClient(http.DefaultClient, address)
	names := []string{".", "..", "a b", "a/b", "k?#", "k\xff"}
	list := func(f api.NamespaceFilter) (found []string) {
		for ns, err := range api.Each(func(p api.Page) (*api.List[api.Namespace], error) {
			p.Size = 4
			return c.ListNamespaces(t.Context(), f, p)
		}) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, string(ns.Name))
		}
		return found
	}
	for _, name := range names {
		n := c.Namespace(name)
		if dry, err := n.Create(t.Context(), api.ClientOptions{DryRun: true}); err != nil || !dry.DryRun {
			t.Errorf("%q, dry: %+v, %v", name, dry, err)
		}
		if created, err := n.Create(t.Context(), api.ClientOptions{}); err != nil || created.Result != api.Created {
			t.Errorf("%q: %+v, %v", name, created, err)
		}
		if deleted, err := n.Delete(t.Context(), api.ClientOptions{}); err != nil || deleted.Result != api.Deleted {
			t.Errorf("%q: %+v, %v", name, deleted, err)
		}
	}
	if got := list(api.NamespaceFilter{Deleted: true}); !slices.Equal(got, names) {
		t.Errorf("deleted are %q, want %q", got, names)
	}
	for _, name := range names {
		if recovered, err := c.Namespace(name).Recover(t.Context(), api.ClientOptions{}); err != nil || recovered.Result != api.Changed {
			t.Errorf("%q: %+v, %v", name, recovered, err)
		}
	}
	if got := list(api.NamespaceFilter{}); !slices.Equal(got, names) {
		t.Errorf("active are %q, want %q", got, names)
	}
	if orphans, err := c.ListOrphans(t.Context(), api.Page{}); err != nil || len(orphans.Items) > 0 {
		t.Errorf("orphans: %+v, %v", orphans, err)
	}
}
