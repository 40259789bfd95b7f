package controlapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Events within a given time are listed, the newest first, in pages of any size.
func TestAuditOfATime(t *testing.T) {
	var clock atomic.Int64 // Unix ms
	store, err := embedded.Open(t.TempDir(), embedded.Config{Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	s := newServer(t, store)
	began := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for i := range 10 {
		limits, err := limiter.NewLimits(limiter.PerDay("l", int64(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		now := began.Add(time.Duration(i) * time.Minute)
		clock.Store(now.UnixMilli())
		edit := limiter.Edit{Ref: limiter.SystemLimitsRef(), Change: func(limiter.Record) (limiter.Record, error) { return limiter.Record{Limits: limits}, nil }}
		if _, err := s.store.Edit(t.Context(), now, limiter.DefaultNamespace, edit); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name        string
		from, to    time.Duration // after the beginning; -1 = none
		first, last int           // minutes of the events, the newest first; -1 = none
	}{
		{"all", -1, -1, 9, 0},
		{"from the time of an event", 4 * time.Minute, -1, 9, 4},
		{"from after an event", 4*time.Minute + time.Nanosecond, -1, 9, 5},
		{"before the time of an event", -1, 4 * time.Minute, 3, 0},
		{"before a time after an event", -1, 4*time.Minute + time.Nanosecond, 4, 0},
		{"between", 2 * time.Minute, 5 * time.Minute, 4, 2},
		{"before all", -1, 0, -1, -1},
		{"after all", time.Hour, -1, -1, -1},
	} {
		for _, size := range []string{"1", "3", "100"} {
			query := url.Values{"size": {size}}
			if test.from >= 0 {
				query.Set("from", began.Add(test.from).Format(time.RFC3339Nano))
			}
			if test.to >= 0 {
				query.Set("to", began.Add(test.to).Format(time.RFC3339Nano))
			}
			var got []int
			for again := true; again; again = query.Get("after") != "" {
				var page api.List[api.AuditEvent]
				w := s.must(t, http.StatusOK, http.MethodGet, "/v1/namespaces/default/audit?"+query.Encode(), "")
				if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Items {
					got = append(got, int(e.Time.Sub(began)/time.Minute))
				}
				query.Set("after", page.Next)
			}
			want := test.first - test.last + 1
			if test.first < 0 {
				want = 0
			}
			if len(got) != want || want > 0 && (got[0] != test.first || got[len(got)-1] != test.last) {
				t.Errorf("%s, pages of %s: %v, want %d to %d", test.name, size, got, test.first, test.last)
			}
		}
	}
	s.must(t, http.StatusBadRequest, http.MethodGet, "/v1/namespaces/default/audit?from=2026-11-23T00:00:00Z&to=2026-11-22T00:00:00Z", "")
	s.must(t, http.StatusBadRequest, http.MethodGet, "/v1/namespaces/default/audit?from=yesterday", "")
}

// The list of everything is the default, and each parameter leaves events out.
func TestAuditOfEverything(t *testing.T) {
	store, err := embedded.Open(t.TempDir(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	s := newServer(t, store)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/entities/e", `{"name": "n"}`)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/limits/entities/e/r", `{"limits": {"l": "1/day"}}`)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/limits/resources/r", `{"limits": {"l": "2/day"}}`)
	s.must(t, http.StatusCreated, http.MethodPut, "/v1/namespaces/default/limits/system", `{"limits": {"l": "3/day"}}`)
	s.must(t, http.StatusOK, http.MethodPut, "/v1/namespaces/default/disabled/namespace", "")
	const all = "namespace.disable limits.put limits.put limits.put entity.put"
	for query, want := range map[string]string{
		"": all, "principal=administer": all, "principal=nobody": "",
		"system=true": "namespace.disable limits.put", "system=false": all, "entity=e": "limits.put entity.put", "resource=r": "limits.put",
		"action=limits": "limits.put limits.put limits.put", "action=entity.put": "entity.put", "action=limits.put&entity=e": "limits.put", "action=bucket": "",
	} {
		var page api.List[api.AuditEvent]
		w := s.must(t, http.StatusOK, http.MethodGet, "/v1/namespaces/default/audit?"+query, "")
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		actions := make([]string, 0, len(page.Items))
		for _, e := range page.Items {
			actions = append(actions, e.Action)
		}
		if got := strings.Join(actions, " "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
