package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// million is a limit of a million that hardly refills, so that the remaining amount
// shows the amount taken. Users whose names begin with "exact" are not served from
// leases.
const million = `
limits: {system: {rpm: {rate: 1/day, burst: 1_000_000}}}
domains:
- domain: shop
  rules:
  - {name: exact, match: {user: "exact*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}, lease: none}
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`

// tableMetricOf returns a metric of a table from the text of /metrics.
func tableMetricOf(t *testing.T, text, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(text, "\nratelimit_dynamodb_"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(value)
	if !found || err != nil {
		t.Fatalf("ratelimit_dynamodb_%s is %q, %v", name, value, err)
	}
	return n
}

func (r *running) tableMetric(t *testing.T, name string) int {
	t.Helper()
	_, text := r.get(t, "/metrics")
	return tableMetricOf(t, text, name)
}

// askMany asks for one hit of a user until n are admitted, one after the other. It
// returns how many writes that cost, and how many requests have an unknown outcome
// because a busy machine did not answer in time.
func (r *running) askMany(t *testing.T, user string, n int) (writes, unanswered int) {
	t.Helper()
	before := r.tableMetric(t, "writes_total")
	for admitted := 0; admitted < n; {
		switch code, a := r.ask(t, user); {
		case code == http.StatusOK:
			admitted++
		case a.Statuses[0].CurrentLimit.RequestsPerUnit == 0 && unanswered < n/10:
			unanswered++
		default:
			t.Fatalf("%s, after %d: %d, %+v", user, admitted, code, a)
		}
	}
	return r.tableMetric(t, "writes_total") - before, unanswered
}

// A service on a table serves a busy bucket from leases, where its rule lets it, and
// returns them at its end: the next service finds every token that was not taken.
func TestAServiceLeasesAndReturns(t *testing.T) {
	const requests = 400
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}\n"+
		"decision: {timeout: 10s, on_unavailable: deny}\ndrain: 0s\n", table, server.URL)+million)
	a := start(t, "--config", file)

	unanswered := map[string]int{}
	writes, n := a.askMany(t, "exact", requests)
	unanswered["exact"] = n
	if writes < requests {
		t.Errorf("lease none: %d decisions cost %d writes, want one each", requests, writes)
	}
	for _, name := range []string{"leases", "lease_grants_total", "lease_decisions_total"} {
		if n := a.tableMetric(t, name); n != 0 {
			t.Errorf("lease none: ratelimit_dynamodb_%s is %d, want 0", name, n)
		}
	}
	writes, n = a.askMany(t, "ada", requests)
	unanswered["ada"] = n
	if writes > requests/4 {
		t.Errorf("lease auto: %d decisions cost %d writes, want at most a quarter", requests, writes)
	}
	if n := a.tableMetric(t, "lease_decisions_total"); n < requests*3/4 {
		t.Errorf("lease auto: %d of %d decisions were served from leases, want most of them", n, requests)
	}
	a.stop(command.ErrTerminated)
	if code := a.wait(t); code != command.ExitOK {
		t.Fatalf("exit code %d", code)
	}

	b := start(t, "--config", file)
	for _, user := range []string{"exact", "ada"} {
		if got, want := b.remaining(t, user), 1_000_000-requests-1; got > want || got < want-unanswered[user] {
			t.Errorf("the next service finds %d tokens of %s, want %d, less %d at most", got, user, want, unanswered[user])
		}
	}
	b.end(t)
}

// Leases come with demand and go when there is none, when the file changes, and at the end.
func TestLeasesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a := startReplica(t, db, million)
		metric := func(name string) int {
			_, text := a.do(t, http.MethodGet, "/metrics", "")
			return tableMetricOf(t, text, name)
		}
		load := func(n int) (writes int) {
			before := db.Count("UpdateItem")
			for range n {
				if admitted, answer := a.ask(t, 1); !admitted {
					t.Fatalf("denied: %+v", answer)
				}
				time.Sleep(time.Millisecond) // of the bubble's clock, as below
			}
			return db.Count("UpdateItem") - before
		}
		if writes := load(2000); writes > 2000/50 {
			t.Errorf("2000 decisions cost %d writes, want at most one for 50", writes)
		}
		if n := metric("leases"); n != 1 {
			t.Errorf("under load there are %d leases, want 1", n)
		}
		time.Sleep(time.Second)
		if n, returned := metric("leases"), metric("lease_returns_total"); n != 0 || returned == 0 {
			t.Errorf("without requests there are %d leases, and %d were returned", n, returned)
		}

		load(200)
		a.mustReload(t, strings.ReplaceAll(million, `"exact*"`, `"*"`))
		if writes := load(200); writes < 200 {
			t.Errorf("lease none: 200 decisions cost %d writes, want one each", writes)
		}
		if n := metric("leases"); n != 0 {
			t.Errorf("lease none: there are %d leases", n)
		}

		a.mustReload(t, million)
		load(200)
		a.stop()
		b := startReplica(t, db, million)
		defer b.stop()
		if _, answer := b.ask(t, 1); answer.Statuses[0].LimitRemaining != 1_000_000-2601 {
			t.Errorf("the next replica finds %d, want %d", answer.Statuses[0].LimitRemaining, 1_000_000-2601)
		}
	})
}

// While the table does not answer leases are served to their end, and no policy decides.
func TestLeasesOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a := startReplica(t, db, "decision: {on_unavailable: deny}\n"+million)
		defer a.stop()
		for range 1000 {
			a.ask(t, 1)
			time.Sleep(time.Millisecond) // of the bubble's clock, as below
		}
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
		served := 0
		for range 10 {
			if admitted, _ := a.ask(t, 1); admitted {
				served++
			}
		}
		if served != 10 {
			t.Errorf("%d of 10 requests were served, want all: the lease has them", served)
		}
		time.Sleep(6 * time.Second)
		if admitted, _ := a.ask(t, 1); admitted {
			t.Error("a lease is served after its end")
		}
		db.SetPlan(nil)
	})
}

// A replica does not deny tokens of its own lease. Alone on a bucket it admits to the
// last token, also requests larger than its lease. A denial of a large request hides no
// tokens from smaller ones.
func TestALeaseHidesNothingFromItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startReplica(t, newTable(t), million)
		defer a.stop()
		for range 500 {
			a.ask(t, 1)
			time.Sleep(time.Millisecond) // of the bubble's clock
		}
		for i, step := range []struct {
			hits     int
			admitted bool
			left     int
		}{
			{999_900, false, 999_500},
			{1, true, 999_499},
			{999_000, true, 499},
			{500, false, 499},
			{2, true, 497},
			{497, true, 0},
			{1, false, 0},
		} {
			admitted, answer := a.ask(t, step.hits)
			if left := answer.Statuses[0].LimitRemaining; admitted != step.admitted || left != step.left {
				t.Errorf("step %d, %d hits: admitted is %t with %d left, want %t with %d", i, step.hits, admitted, left, step.admitted, step.left)
			}
		}
	})
}

// A lease that is parked while its bucket is full again does not come on top of it: of a
// burst at one instant both replicas together admit the content of the bucket, and no
// more.
func TestAParkedLeaseIsNoSecondBucket(t *testing.T) {
	const capacity = 1000
	fast := strings.Replace(million, "{rate: 1/day, burst: 1_000_000}", fmt.Sprintf("{rate: 100_000/second, burst: %d}", capacity), 1)
	for _, parked := range []time.Duration{0, 90 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(parked.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				a, b := startReplica(t, db, fast), startReplica(t, db, fast)
				defer a.stop()
				defer b.stop()
				for range 300 {
					for _, r := range []replica{a, b} {
						if admitted, answer := r.ask(t, 1); !admitted {
							t.Fatalf("denied: %+v", answer)
						}
					}
					time.Sleep(time.Millisecond) // of the bubble's clock, as below
				}
				time.Sleep(parked)
				admitted := 0
				for range capacity { // at one instant
					for _, r := range []replica{a, b} {
						if ok, _ := r.ask(t, 5); ok {
							admitted += 5
						}
					}
				}
				if admitted > capacity || admitted < capacity/2 {
					t.Errorf("%d tokens at one instant, want at most %d, and at least half of it to show something", admitted, capacity)
				}
			})
		})
	}
}
