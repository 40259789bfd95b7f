package catalog

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// TestExpiredEvents: an event whose time is over is in no list, though the table still has it.
func TestExpiredEvents(t *testing.T) {
	s := newCatalogOnly(t, dynamofake.New())
	s.auditRetention = time.Nanosecond
	storetest.RunExpiry(t, s)
}

// TestAPageOfEventsIsBounded: a page reads at most auditScan events, and the next one goes on.
func TestAPageOfEventsIsBounded(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	ref := limiter.ResourceLimitsRef("r")
	for i := range auditScan + 10 {
		ctx := limiter.WithPrincipal(t.Context(), "others")
		if i == 0 {
			ctx = limiter.WithPrincipal(t.Context(), "first")
		}
		if err := c.PutLimits(ctx, ns, ref, limiter.Record{Limits: mustLimits(t, limiter.PerDay("l", int64(i+1)))}); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
		calls++
		return dynamofake.Fault{}
	})
	for _, f := range []limiter.AuditFilter{{Principal: "first"}, {Principal: "first", Subject: &ref}} {
		calls = 0
		page, err := c.ListEvents(t.Context(), ns, f, limiter.Page{Size: 5})
		if err != nil || len(page.Items) != 0 || page.Next == "" {
			t.Fatalf("%+v: %d events, next %q, %v; want a cursor alone", f, len(page.Items), page.Next, err)
		}
		if calls > 2*auditScan/auditStep+1 {
			t.Errorf("%+v: %d calls for one page", f, calls)
		}
		page, err = c.ListEvents(t.Context(), ns, f, limiter.Page{Size: 5, After: page.Next})
		if err != nil || len(page.Items) != 1 || page.Next != "" {
			t.Errorf("%+v: the next page has %d events, next %q, %v; want the first event of all", f, len(page.Items), page.Next, err)
		}
	}
}
