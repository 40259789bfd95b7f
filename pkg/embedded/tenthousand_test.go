package embedded_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Ten thousand entities are listed page by page, each once and in order of IDs.
func TestTenThousandEntities(t *testing.T) {
	s := embedded.New(embedded.Config{})
	defer func() { _ = s.Close(t.Context()) }()
	const n = 10_000
	began := time.Now()
	for i := range n {
		if _, err := s.PutEntity(t.Context(), began, limiter.DefaultNamespace, limiter.Entity{ID: fmt.Sprintf("key/%05d", i), Parent: "org"}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("stored in %v", time.Since(began))
	for _, f := range []limiter.EntityFilter{{}, {Parent: "org"}} {
		began = time.Now()
		seen, pages, p := 0, 0, limiter.Page{}
		for again := true; again; again = p.After != "" {
			page, err := s.ListEntities(t.Context(), limiter.DefaultNamespace, f, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Items {
				if want := fmt.Sprintf("key/%05d", seen); e.Record.Entity.ID != want {
					t.Fatalf("entity %d is %s, want %s", seen, e.Record.Entity.ID, want)
				}
				seen++
			}
			p.After = page.Next
			pages++
		}
		t.Logf("%d in %d pages in %v", seen, pages, time.Since(began))
		if seen != n || pages > n/limiter.DefaultPage+1 {
			t.Errorf("%d entities in %d pages, want %d in %d", seen, pages, n, n/limiter.DefaultPage)
		}
	}
}
