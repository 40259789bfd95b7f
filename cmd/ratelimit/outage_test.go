package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// The lines of the log that begin and end an outage.
const (
	outageBegins = "the store is unavailable: on_unavailable decides calls, and charges wait"
	outageIsOver = "the store answers again"
)

// ready returns the state of the store by /readyz.
func (r replica) ready(t *testing.T) admin.StoreState {
	t.Helper()
	_, text := r.do(t, http.MethodGet, "/readyz", "")
	var state admin.State
	if err := json.Unmarshal([]byte(text), &state); err != nil || state.Store == nil {
		t.Fatalf("%v in %s", err, text)
	}
	return *state.Store
}

// line returns the only line of the log with a message.
func (r replica) line(t *testing.T, message string) string {
	t.Helper()
	_, rest, _ := strings.Cut(r.log.String(), message)
	line, _, _ := strings.Cut(rest, "\n")
	if n := strings.Count(r.log.String(), message); n != 1 {
		t.Errorf("the log says %d times %q, want once:\n%s", n, message, r.log)
	}
	return line
}

func fails(code string) dynamofake.Fault {
	return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: code, Message: "of a test"}}
}

// An outage is logged once when it begins and once when it is over, with its policy and
// the decisions by that policy. Meanwhile readiness, metrics and explanations show it,
// and no call waits for its deadline.
func TestAnOutageIsSeen(t *testing.T) {
	for name, test := range map[string]struct {
		fault dynamofake.Fault
		state string
	}{
		"errors":         {dynamofake.Fault{Kind: dynamofake.ServerError}, "unavailable"},
		"silence":        {dynamofake.Fault{Kind: dynamofake.HoldReply}, "unavailable"},
		"throttles":      {dynamofake.Fault{Kind: dynamofake.Throttle}, "throttled"},
		"expired token":  {fails("ExpiredTokenException"), "unavailable"},
		"unknown client": {fails("UnrecognizedClientException"), "unavailable"},
		"key of KMS":     {fails("KMSAccessDeniedException"), "unavailable"},
		"no table":       {dynamofake.Fault{Kind: dynamofake.Fail, Err: &types.ResourceNotFoundException{}}, "unavailable"},
		"unknown code":   {fails("SomethingNewException"), "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				many := strings.NewReplacer("2/min", "100_000/min", "hits}}", "hits}, lease: none}").Replace(programtest.TwoPerMinute) // late calls are admitted
				r := startReplica(t, db, strings.Replace(many, "domains:", "domains:\n- domain: other\n  rules: [{on_unavailable: deny, match: {user: \"*\"}, entity: \"user/{user}\", resource: api, consume: {rpm: hits}}]", 1))
				defer r.stop()
				r.ask(t, 1)
				if got := r.ready(t); got.State != "available" || got.Policy != "allow" || got.RulesWithAnother != 1 {
					t.Errorf("before: %+v", got)
				}
				began := time.Now()
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return test.fault })
				r.askUntilOutage(t)
				byPolicy := 1
				for range 100 { // one now and then goes to the table, to see whether it answers
					if _, answer := r.ask(t, 1); answer.DynamicMetadata["degraded"] == "allow" {
						byPolicy++
					}
				}
				if byPolicy < 80 {
					t.Fatalf("%d calls of 101 were decided by the policy", byPolicy)
				}
				r.seenInOutage(t, test.state, began, byPolicy+1)
				db.SetPlan(nil)
				time.Sleep(time.Minute)
				r.seenAfterOutage(t)
			})
		})
	}
}

// askUntilOutage asks until the first call that a policy decides. Calls before it are
// decided late, for about a second.
func (r replica) askUntilOutage(t *testing.T) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, answer := r.ask(t, 1); answer.DynamicMetadata["degraded"] != nil {
			synctest.Wait() // the outage is logged beside the call
			return
		}
	}
	t.Fatal("no call was decided by a policy in 3 s")
}

// seenInOutage requires that every report about the store shows the outage, with one more
// call by the policy.
func (r replica) seenInOutage(t *testing.T, state string, began time.Time, byPolicy int) {
	t.Helper()
	before := time.Now()
	if r.ask(t, 1); time.Since(before) > limiter.DefaultTimeout {
		t.Errorf("a call waited for %v", time.Since(before))
	}
	if got := r.ready(t); got.State != state || got.Since.Before(began.Add(-time.Millisecond)) || got.Since.After(time.Now()) {
		t.Errorf("/readyz: got %+v, want %s since %v", got, state, began)
	}
	if code, _ := r.do(t, http.MethodGet, "/healthz", ""); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	line := r.line(t, outageBegins)
	for _, want := range []string{"since=", "on_unavailable=allow", "rules_with_another=1", "calls_decided_by_policy=", "state=" + state, "error="} {
		if !strings.Contains(line, want) {
			t.Errorf("the log lacks %q: %s", want, line)
		}
	}
	_, text := r.do(t, http.MethodGet, "/metrics", "")
	for _, want := range []string{
		fmt.Sprintf(`ratelimit_decisions_total{domain="shop",result="fallback",rule="users"} %d`, byPolicy),
		fmt.Sprintf(`ratelimit_store_state{state=%q} 1`, state), `ratelimit_store_state{state="available"} 0`,
		`ratelimit_store_policy{policy="allow"} 1`, `ratelimit_store_policy{policy="deny"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	_, text = r.do(t, http.MethodPost, "/v1/explain", `{"domain":"shop","entries":[{"key":"user","value":"ada"}]}`)
	var x admin.Explanation
	if err := json.Unmarshal([]byte(text), &x); err != nil || x.Fallback != "allow" || !x.Admitted {
		t.Errorf("explained as %s", text)
	}
	var table strings.Builder
	if err := (cli.Printer{Live: true}).WriteExplanation(&table, &x); err != nil || !strings.Contains(table.String(), "fallback  allow: the store is unavailable") {
		t.Errorf("explained as\n%s", table.String())
	}
}

func (r replica) seenAfterOutage(t *testing.T) {
	t.Helper()
	if _, answer := r.ask(t, 1); answer.DynamicMetadata["degraded"] != nil {
		t.Errorf("after: %+v", answer)
	}
	if got := r.ready(t); got.State != "available" || got.Since.IsZero() {
		t.Errorf("/readyz afterwards: %+v", got)
	}
	line := r.line(t, outageIsOver)
	for _, want := range []string{"since=", "lasted=", "on_unavailable=allow", "calls_decided_by_policy="} {
		if !strings.Contains(line, want) {
			t.Errorf("the log lacks %q: %s", want, line)
		}
	}
	r.line(t, outageBegins) // still once
}

// The documentation quotes how long is waited, and names the states.
func TestOutagesAreDocumented(t *testing.T) {
	quotes := map[string][]string{
		"configuration.md": {fmt.Sprintf("up to %.0f seconds in all", command.StartTimeout.Seconds()), "`ratelimit_store_state`", "`ratelimit_store_policy`"},
		"guarantees.md":    {fmt.Sprintf("at most %d,000, and booked", reservation.DefaultMaxKept/1000), fmt.Sprintf("%d ms, or `decision.timeout`", reservation.DefaultWait.Milliseconds())},
		"llm-gateways.md":  {fmt.Sprintf("may take %.0f seconds", reservation.DefaultBudget.Seconds()), fmt.Sprintf("after %d ms, or", reservation.DefaultWait.Milliseconds())},
	}
	for _, c := range []dynamo.Condition{dynamo.Available, dynamo.Recovering, dynamo.Throttled, dynamo.Unavailable} {
		quotes["configuration.md"] = append(quotes["configuration.md"], "`"+c.String()+"`")
	}
	for name, wants := range quotes {
		quoted.Require(t, "../../docs/"+name, wants...)
	}
}

// A call that the role does not allow, or that is invalid, is no outage: it is denied.
func TestNoOutage(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "ValidationException"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				r := startReplica(t, db, programtest.TwoPerMinute)
				defer r.stop()
				r.ask(t, 1)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return fails(code) })
				for range 30 {
					if admitted, answer := r.ask(t, 1); admitted || answer.DynamicMetadata["reason"] != "invalid" {
						t.Fatalf("admitted is %t: %+v", admitted, answer)
					}
				}
				if got := r.ready(t); got.State != "available" {
					t.Errorf("/readyz: %+v", got)
				}
				if strings.Contains(r.log.String(), outageBegins) {
					t.Errorf("the log has an outage:\n%s", r.log)
				}
			})
		})
	}
}
