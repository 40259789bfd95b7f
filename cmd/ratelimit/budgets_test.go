package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// alarms is a receiver of a webhook whose first calls fail.
type alarms struct {
	*httptest.Server

	mu    sync.Mutex
	fails int
	got   []string
	bad   []string
}

const webhookKey = "0123456789abcdef0123456789abcdef"

func newAlarms(t *testing.T, fails int) *alarms {
	t.Helper()
	a := &alarms{fails: fails}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *alarms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if want := "v1=" + server.SignAlert([]byte(webhookKey), r.Header.Get(server.TimestampHeader), body); r.Header.Get(server.SignatureHeader) != want {
		a.bad = append(a.bad, string(body))
	}
	a.fails--
	if a.fails >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var e struct {
		Entity  string `json:"entity"`
		Limit   string `json:"limit"`
		Window  string `json:"window"`
		Percent int    `json:"percent"`
		Budget  int    `json:"budget"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		a.bad = append(a.bad, err.Error())
	}
	a.got = append(a.got, fmt.Sprintf("%s %s %s %d%% of %d", e.Entity, e.Limit, e.Window, e.Percent, e.Budget))
}

// wants requires the events that were accepted, in any order.
func (a *alarms) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.got)
	if diff := cmp.Diff(want, a.got); diff != "" || len(a.bad) > 0 {
		t.Errorf("%s: %q, events (-want +got):\n%s", when, a.bad, diff)
	}
}

// config adds the receiver, and budgets of its limit rpm, to a configuration. The limit has the rate.
func (a *alarms) config(t *testing.T, file, rate string) string {
	t.Helper()
	system := "limits: {system: {rpm: " + rate
	if !strings.Contains(file, system) {
		t.Fatalf("%s is not in\n%s", system, file)
	}
	const entities = "limits: {entities: {user/rich: {limits: {_default_: {rpm: {rate: 1000/day, budget: {month: 1000}}}}}}, "
	file = strings.Replace(file, system, entities+"system: {rpm: {rate: "+rate+", budget: {month: 10}}", 1)
	return file + fmt.Sprintf(`
budgets:
  webhook: {url: '%s', key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
`, a.URL)
}

// stored is an entity whose limits are stored, with a budget.
const stored = "user/eve"

// store stores limits with a budget, as an operator does.
func (r *running) store(t *testing.T) {
	t.Helper()
	code, out, errOut := output(t, "set", "limits", "--entity", stored, "rpm=1000/day budget 5/month", "all=1000000/day", "--allow-new", "--server", r.adminURL(t))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
}

// A service with a data directory calls the webhook once for each threshold, across restarts, also where
// calls fail at first.
func TestBudgetsOfAService(t *testing.T) {
	receiver := newAlarms(t, 1)
	file, dir := programtest.WriteFile(t, "c.yaml", receiver.config(t, hundredPerDay, "100/day")), filepath.Join(t.TempDir(), "data")
	for life, asked := range []int{8, 0, 2} {
		r := start(t, "--config", file, "--data", dir)
		if life == 0 {
			r.store(t)
		}
		for range asked {
			r.ask(t, "ada")
			r.ask(t, "rich")
		}
		for range asked / 2 {
			r.ask(t, "eve")
		}
		r.end(t)
		if log := r.log.String(); strings.Contains(log, "a budget is used to a threshold") != (asked > 0) || strings.Contains(log, receiver.URL) {
			t.Errorf("life %d:\n%s", life, log)
		}
		if life < 2 {
			receiver.wants(t, fmt.Sprint("life ", life), "user/ada rpm month 80% of 10", "user/eve rpm month 80% of 5")
		}
	}
	receiver.wants(t, "at the end", "user/ada rpm month 100% of 10", "user/ada rpm month 80% of 10", "user/ada rpm month 95% of 10",
		"user/eve rpm month 100% of 5", "user/eve rpm month 80% of 5", "user/eve rpm month 95% of 5")
}

// An aggregator does the same for a fleet, and another one repeats no alert.
func TestBudgetsOfAFleet(t *testing.T) {
	server, receiver := dynamotest.Start(t), newAlarms(t, 1)
	file := programtest.WriteFile(t, "c.yaml", receiver.config(t, onTable(server.URL, dynamotest.TableName(t), "100/minute"), "100/minute"))
	service := start(t, "--config", file)
	service.store(t)
	for range 12 {
		service.ask(t, "ada")
	}
	for range 4 {
		service.ask(t, "eve")
	}
	for life := range 2 {
		a := aggregate(t, file)
		if life == 0 {
			a.told(t, 4)
		} else {
			service.ask(t, "ada")
			list := ""
			t.Cleanup(func() { t.Logf("usage:\n%s", list) })
			eventually(t, "13 requests in the usage", func() bool {
				code, now, errOut := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t))
				list = now + errOut
				return code == 0 && strings.Contains(list, ",13,")
			})
		}
		a.end(t)
		receiver.wants(t, fmt.Sprint("life ", life), "user/ada rpm month 100% of 10", "user/ada rpm month 80% of 10", "user/ada rpm month 95% of 10",
			"user/eve rpm month 80% of 5")
	}
}

// Two services on one server call the webhook once for each threshold: also for usage that they report when they end.
func TestBudgetsOfServicesOnOneServer(t *testing.T) {
	t.Parallel()
	of, receiver := valkeytest.Start(t), newAlarms(t, 1)
	text := receiver.config(t, onServer(of.Address, "", "100/day"), "100/day")
	file := programtest.WriteFile(t, "c.yaml", text)
	a, b := start(t, "--config", file), start(t, "--config", file)
	a.store(t)
	for range 4 {
		a.ask(t, "ada")
		b.ask(t, "ada")
		b.ask(t, "eve")
	}
	first := []string{"user/ada rpm month 80% of 10", "user/eve rpm month 80% of 5"}
	eventually(t, "two events", func() bool { return receiver.accepted() >= len(first) })
	receiver.wants(t, "while they run", first...)
	a.ask(t, "ada")
	b.ask(t, "ada")
	b.ask(t, "eve")
	a.end(t)
	b.end(t)
	receiver.wants(t, "at the end", "user/ada rpm month 100% of 10", "user/ada rpm month 80% of 10", "user/ada rpm month 95% of 10",
		"user/eve rpm month 100% of 5", "user/eve rpm month 80% of 5", "user/eve rpm month 95% of 5")
	logs := a.log.String() + b.log.String()
	if n := strings.Count(logs, "a budget is used to a threshold"); n != 6 || strings.Contains(logs, receiver.URL) {
		t.Errorf("%d events in the logs:\n%s", n, logs)
	}
}

// accepted returns the number of events that were accepted.
func (a *alarms) accepted() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.got)
}

// A change of limits shows the budgets that are in force before and after it.
func TestBudgetsBeforeAndAfterAChange(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", `
limits: {system: {rpm: 9/minute}, resources: {web: {rpm: {rate: 8/minute, budget: {month: 90}}}}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: web, consume: {rpm: 1}}
`))
	for _, step := range []struct{ args, want string }{
		{"set limits --system rpm=9/minute_budget_5/day", "  rpm: 9/minute, system (file) -> 9/minute budget 5/day, system (stored)\n"},
		{"set limits --system rpm=20/minute --dry-run", "  rpm: 9/minute budget 5/day, system (stored) -> 20/minute, system (stored)\n"},
		{"set limits --resource web rpm=30/minute", "  rpm: 8/minute budget 5/day budget 90/month, resource (file) -> 30/minute budget 5/day, resource (stored)\n"},
		{"set limits --entity user/ada --resource web rpm=7/minute_budget_4/hour", "  rpm: 30/minute budget 5/day, resource (stored) -> 7/minute budget 4/hour budget 5/day, entity (stored)\n"},
		{"get limits --entity user/ada --resource web --effective", "LIMIT  RATE      BURST  BUDGET        FROM\nrpm    7/minute  -      4/hour 5/day  entity (stored)\n"},
		{"set limits --system rpm=unlimited", "  rpm: 9/minute budget 5/day, system (stored) -> unlimited, system (stored)\n"},
	} {
		args := strings.Fields(step.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		code, stdout, stderr := output(t, append(args, "--server", r.adminURL(t))...)
		if code != 0 || !strings.Contains(stdout, step.want) {
			t.Errorf("%s: exit code %d, want %q in\n%s%s", step.args, code, step.want, stdout, stderr)
		}
	}
}
