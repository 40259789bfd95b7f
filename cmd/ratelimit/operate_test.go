package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// A limit that is set through one service of a fleet is in force on all. Lists of any service
// have it, and its audit names the principal that set it.
func TestOperateAFleet(t *testing.T) {
	t.Parallel()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	file := programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, "3/hour"))
	services := []*running{start(t, "--config", file), start(t, "--config", file), start(t, "--config", file)}
	on := func(i int, args ...string) string {
		t.Helper()
		code, stdout, stderr := output(t, append(args, "--server", services[i].adminURL(t))...)
		if code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	for _, r := range services {
		r.ask(t, "eve")
	}
	on(0, "set", "limits", "--system", "rpm=7/hour", fmt.Sprintf("all=%d/hour", int64(plenty)))
	obeyed(t, "7 an hour by the command", 7, services...)
	on(1, "set", "limits", "--system", "rpm=5/hour")
	obeyed(t, "5 an hour by the command", 5, services...)
	on(1, "set", "entity", "user/eve", "--parent", "org/acme", "--cascade", "--allow-new")
	eventually(t, "the entity in the list of another service", func() bool {
		return strings.Contains(on(2, "list", "entities", "--parent", "org/acme"), "user/eve  org/acme  true")
	})
	manifest := programtest.WriteFile(t, "m.yaml", "manifest: fleet\nlimits: {resources: {gpt: {rpm: 9/minute}}, entities: {key/k: {parent: org/acme, limits: {_default_: {rpm: 8/minute}}}}}\n")
	if got := on(0, "apply", "-f", manifest, "--allow-new"); !strings.HasSuffix(got, "3 created, 0 unchanged\n") {
		t.Errorf("apply: %s", got)
	}
	if got := on(1, "apply", "-f", programtest.WriteFile(t, "none.yaml", "manifest: fleet"), "--prune", "--yes"); !strings.HasSuffix(got, "0 unchanged, 3 deleted\n") {
		t.Errorf("prune: %s", got)
	}
	audit := on(2, "list", "audit", "--system")
	if strings.Count(audit, "  limits.put  $SYSTEM") != 2 || strings.Index(audit, "rpm 5/hour") > strings.Index(audit, "rpm 7/hour") {
		t.Errorf("the audit is\n%s", audit)
	}
	if got := on(0, "list", "entities", "-n", "nothing"); got != "ID  PARENT  CASCADE  PLAN  NAME\n" {
		t.Errorf("entities of an unused namespace:\n%s", got)
	}
	adjustEve(t, on, services)
	on(0, "disable", "entity", "org/acme") // the parent of eve
	refused(t, "disabled", services...)
	if got := on(1, "list", "disabled"); !strings.HasPrefix(got, "LEVEL   ENTITY    RESOURCE  SINCE ") || strings.Count(got, "\n") != 2 || !strings.Contains(got, "\nentity  org/acme  - ") {
		t.Errorf("disabled:\n%s", got)
	}
	on(1, "enable", "entity", "org/acme")
	obeyed(t, "5 an hour again", 5, services...)
	on(1, "delete", "namespace", "default", "--yes")
	refused(t, "disabled", services...)
	if got := on(2, "list", "namespaces", "--deleted", "-o", "json"); !strings.Contains(got, `"state": "deleted"`) {
		t.Errorf("deleted namespaces:\n%s", got)
	}
	on(2, "recover", "namespace", "default")
	obeyed(t, "5 an hour after the recovery", 5, services...)
	on(2, "delete", "limits", "--system", "--yes")
	obeyed(t, "3 an hour by the file", 3, services...)
}

// adjustEve changes the balances of a bucket in use: a change through one service is listed and
// obeyed by all, is made once for a key, and is in the audit.
func adjustEve(t *testing.T, on func(i int, args ...string) string, services []*running) {
	t.Helper()
	bucket := []string{"bucket", "--entity", "user/eve", "--resource", "api", "--limit", "rpm"}
	adjust := func(i int, verb string, args ...string) string {
		return on(i, append(append([]string{verb}, bucket...), args...)...)
	}
	for i, step := range []struct {
		verb, balance string
		args          []string
	}{
		{"reset", "5", nil},
		{"take-out", "2", []string{"3"}},
		{"top-up", "3", []string{"1", "--once", "ticket 1"}},
		{"top-up", "3", []string{"1", "--once", "ticket 1"}},
		{"set", "0", []string{"0"}},
	} {
		got := adjust(i%3, step.verb, step.args...)
		if !strings.Contains(strings.Join(strings.Fields(got), " "), "5/hour - "+step.balance) { // it may have refilled a part
			t.Errorf("%s %v: %q, want a balance of %s", step.verb, step.args, got, step.balance)
		}
		if got := on((i+1)%3, "list", "buckets", "--entity", "user/eve"); !strings.Contains(got, "-      "+step.balance) {
			t.Errorf("the list of another service after %s is\n%s", step.verb, got)
		}
	}
	for _, want := range []struct {
		what string
		code int
	}{{"a denial by each service", http.StatusTooManyRequests}, {"an admission by each service after the reset", http.StatusOK}} {
		for _, r := range services {
			eventually(t, want.what, func() bool {
				code, _ := r.ask(t, "eve")
				return code == want.code
			})
		}
		adjust(0, "reset")
	}
	if audit := on(1, "list", "audit", "--entity", "user/eve"); !strings.Contains(audit, "limit rpm, 3 tokens; rpm from 5 to 2") || strings.Count(audit, "bucket.top-up") != 1 {
		t.Errorf("the audit is\n%s", audit)
	}
}

// refused requires that every service denies user eve for a reason within 5 seconds.
func refused(t *testing.T, reason string, services ...*running) {
	t.Helper()
	began := time.Now()
	for _, r := range services {
		eventually(t, reason, func() bool {
			code, answer := r.ask(t, "eve")
			return code == http.StatusTooManyRequests && answer.DynamicMetadata["reason"] == reason
		})
	}
	if took := time.Since(began); took > told {
		t.Errorf("%s after %v, want at most %v", reason, took, told)
	}
}
