package controlapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// server is the admin listener of a service, for callers of any role.
type server struct {
	store   controlapi.Store
	control *admin.Control
	tokens  map[admin.Role]string
	denied  *controlapi.TopCounter
}

// newServer serves a store with a file, or store if it is not nil.
func newServer(t *testing.T, store controlapi.Store) *server {
	t.Helper()
	if store == nil {
		s, err := embedded.Open(t.TempDir(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		store = s
	}
	can := api.Capabilities{}
	if s, ok := store.(limiter.Store); ok {
		can.Audit, can.Usage = s.Capabilities().AuditLogging, s.Capabilities().UsageSnapshots
	}
	buckets, _ := store.(limiter.Buckets)
	usage, _ := store.(limiter.Usage)
	denied := controlapi.NewTopCounter()
	activity := controlapi.Activity{
		Denied: denied, Busiest: controlapi.NewTopCounter(), Shadow: controlapi.NewTopCounter(), Since: time.Unix(1, 0),
		Decided:  func() map[string]int64 { return map[string]int64{"allowed": 7, "denied": 0} },
		DeniedBy: func() map[string]int64 { return map[string]int64{"disabled": 2} },
	}
	inFile, err := limiter.NewBudgets(limiter.Budget{Limit: "l", Window: limiter.UsageDay, Tokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	budgets := limiter.NewBudgetSet(map[limiter.Ref]*limiter.Budgets{limiter.SystemLimitsRef(): inFile})
	file := fileInForce(t)
	sources := controlapi.Sources{Budgets: func() *limiter.BudgetSet { return budgets }, File: func() *controlapi.File { return file }}
	a, err := controlapi.New(controlapi.Config{Sources: sources, Store: store, Buckets: buckets, Usage: usage, Now: time.Now, Status: api.Status{Version: "1", Store: "embedded", Can: can}, Activity: activity, Fleet: someFleet{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{store: store, tokens: map[admin.Role]string{}, denied: denied}
	access := new(admin.Access)
	tokens := make([]admin.Token, 0, 3)
	for _, role := range []admin.Role{admin.RoleRead, admin.RoleOperate, admin.RoleAdminister} {
		token, hash := admin.NewToken()
		s.tokens[role] = token
		tokens = append(tokens, admin.Token{Name: role.String(), Role: role, Hash: hash})
	}
	access.Set(admin.Credentials{Tokens: tokens})
	s.control = admin.NewControl(admin.ControlConfig{Access: access, Explainer: new(admin.Explainer), Routes: a.Routes()})
	return s
}

// someFleet is two replicas, of which one has a store and an aggregator.
type someFleet struct{}

func (someFleet) State(context.Context) *api.Fleet {
	at, lag := time.Unix(1_800_000_000, 0).UTC(), 3.5
	return &api.Fleet{
		Time: at, StepSeconds: 10, Begin: at.Add(-10 * time.Second), Complete: at, Results: map[string][]int64{"allowed": {7, 1}, "denied": {0, 0}},
		Replicas: []api.Replica{
			{ID: "a", Started: at, Seen: at, Here: true, Ready: true, Decisions: 8},
			{ID: "b", Started: at, Seen: at, Store: &api.StoreState{Type: "dynamodb", State: "available", Policy: "allow"}},
		},
		Events:     []api.Event{{Time: at, Replica: "a", Kind: api.EventStart, Text: "The service starts."}},
		Aggregator: &api.Aggregator{State: api.AggregatorFailing, Text: "it fails: x", Do: "y", Processes: 1, Seen: at, LagSeconds: &lag, Problem: "x"},
	}
}

// Top returns a row that tells what it was asked for.
func (someFleet) Top(_ context.Context, by string, n int, f controlapi.TopFilter) []controlapi.TopRow {
	return []controlapi.TopRow{{TopKey: controlapi.TopKey{Namespace: f.Namespace, Entity: by, Resource: f.Resource, Limit: f.Limit}, Events: int64(n), Amount: 1500}}
}

// inMemory is a store without a file.
func inMemory(t *testing.T) *embedded.Store {
	t.Helper()
	s := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// newNamed are the paths of changes that refuse new names.
var newNamed = regexp.MustCompile(`^/v1/namespaces/[^/]+/(entities|limits|disabled)/`)

// as makes a request as a caller of a role. Names may be new, unless the target says otherwise. Headers are pairs.
func (s *server) as(t *testing.T, role admin.Role, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	if changes := method == http.MethodPut || method == http.MethodDelete && strings.Contains(target, "/disabled/"); changes && !strings.Contains(target, "allowNew") && newNamed.MatchString(target) {
		if target += "?allowNew=true"; strings.Count(target, "?") > 1 {
			target = target[:strings.LastIndex(target, "?")] + "&allowNew=true"
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, content)
	r.Header.Set("Authorization", "Bearer "+s.tokens[role])
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.control.ServeHTTP(w, r)
	return w
}

// do makes a request as an administrator.
func (s *server) do(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.as(t, admin.RoleAdminister, method, target, body, headers...)
}

// must is do, and requires a status.
func (s *server) must(t *testing.T, status int, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := s.do(t, method, target, body, headers...)
	if w.Code != status {
		t.Fatalf("%s %s: %d %s, want %d", method, target, w.Code, w.Body, status)
	}
	return w
}

// use takes 4 of 10 tokens a day of an entity, for resource r.
func (s *server) use(t *testing.T, entity string) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 10))
	if err != nil {
		t.Fatal(err)
	}
	taker, ok := s.store.(limiter.Store)
	if !ok {
		t.Fatal("the store takes nothing")
	}
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: entity, Resource: "r"},
		Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "l", Take: 4000}},
	}
	if admitted, err := taker.Take(t.Context(), time.Now(), []limiter.Op{op}); !admitted || err != nil {
		t.Fatal(admitted, err)
	}
}

// generation returns a number that changes with every change of the store.
func (s *server) generation(t *testing.T) uint64 {
	t.Helper()
	g, err := s.store.(limiter.Store).Read(t.Context(), limiter.DefaultNamespace, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// problemOf reads an answer with a problem.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != api.ProblemType || p.Status != w.Code || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("%d %s %q is no problem: %v", w.Code, w.Header().Get("Content-Type"), w.Body, err)
	}
	return p
}
