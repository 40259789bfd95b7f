package rls_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// newLogged starts a service with one rule in the domain "shop", and returns its log.
func newLogged(t *testing.T) (*env, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	e := newEnv(t, func(cfg *rls.Config) { cfg.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	e.service.Reload(shopRules(t), nil)
	return e, log
}

func shopRules(t *testing.T) *descriptor.Rules {
	t.Helper()
	return compile(t, []descriptor.DomainSpec{{Domain: "shop", Rules: []descriptor.RuleSpec{
		{Name: "users", Match: match("user", "*"), Takes: takes("{user}", "api", nil, "rpm")},
	}}})
}

// lines returns the lines logged since the last call, without their times.
func lines(t *testing.T, log *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "time")
		all = append(all, m)
	}
	log.Reset()
	return all
}

// Descriptors that no rule matches are named once, without values.
func TestUnmatchedIsLogged(t *testing.T) {
	t.Parallel()
	e, log := newLogged(t)
	call := func(domain string, keysAndValues ...string) {
		t.Helper()
		if _, err := e.ask(t, fmt.Sprintf(`{"domain":%q,"descriptors":[%s]}`, domain, descriptorJSON(``, keysAndValues...))); err != nil {
			t.Fatal(err)
		}
		e.clock.advance(time.Second)
	}
	unknown := map[string]any{
		"level": "WARN", "msg": "unknown domain: no configuration file has it", "domain": "shpo", "answer": "admitted",
		"did_you_mean": "shop", "domains": []any{"shop"},
	}
	unmatched := map[string]any{
		"level": "WARN", "msg": "no rule matches a descriptor; `ratelimit explain` shows the nearest", "domain": "shop", "answer": "admitted",
		"keys": []any{"usr", "plan"},
	}
	want := func(step string, want ...map[string]any) {
		t.Helper()
		if diff := cmp.Diff(want, lines(t, log)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	call("shop", "user", "ada")
	want("a rule matches")
	for range 3 {
		call("shpo", "user", "canary")
	}
	want("a mistyped domain", unknown)
	for i := range 3 {
		call("shop", "usr", fmt.Sprint("canary", i), "plan", "canary")
	}
	want("mistyped keys", unmatched)
	e.clock.advance(time.Hour)
	call("shpo", "user", "canary")
	call("shop", "usr", "canary", "plan", "canary")
	want("an hour later", unknown, unmatched)
	e.service.Reload(shopRules(t), &rls.Options{UnmatchedDeny: true})
	call("shpo", "user", "canary")
	unknown["answer"] = "denied"
	want("after a reload that denies", unknown)
}

// Of any number of names there is at most one line of each kind a second and a hundred an hour,
// each of them short.
func TestUnmatchedNamesAreBounded(t *testing.T) {
	t.Parallel()
	e, log := newLogged(t)
	hostile := strings.Repeat("\xff\n\x1b[31m", 30)
	for i := range 300 {
		wire := rawCall(fmt.Sprintf("d%d%s", i, strings.Repeat("x", 300)), manyKeys(100)...)
		if _, err := e.askRaw(t, wire); err != nil {
			t.Fatal(err)
		}
		e.clock.advance(100 * time.Millisecond)
	}
	if got := len(lines(t, log)); got != 30 {
		t.Errorf("lines in 30 seconds: got %d, want 30", got)
	}
	for i := range 150 {
		if _, err := e.askRaw(t, rawCall(fmt.Sprintf("e%d%s", i, hostile), "k", "v")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.askRaw(t, rawCall("shop", manyKeys(1+i%40)...)); err != nil {
			t.Fatal(err)
		}
		e.clock.advance(1500 * time.Millisecond)
	}
	if strings.Contains(log.String(), "canary") {
		t.Error("a value of a descriptor is in the log")
	}
	size := log.Len()
	ofKeys := 0
	all := lines(t, log)
	for _, line := range all {
		if line["keys"] != nil {
			ofKeys++
		}
	}
	if len(all)-ofKeys != 71 || size > len(all)*4096 {
		t.Errorf("lines in the rest of an hour: got %d of %d bytes, want 70 that name a domain and one that says there are more", len(all)-ofKeys, size)
	}
	if ofKeys < 16 || ofKeys > 101 { // 16 sets differ in the first 16 keys
		t.Errorf("lines that name keys: got %d, want 16 to 101", ofKeys)
	}
}

// manyKeys returns n keys, each with a value.
func manyKeys(n int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("key\n%d%s", i, strings.Repeat("y", 200)), "canary")
	}
	return pairs
}

// Descriptors that no rule matches hide no unknown domain, at any number and any time.
func TestUnmatchedKeysHideNoDomain(t *testing.T) {
	t.Parallel()
	e, log := newLogged(t)
	ask := func(domain, key string) {
		t.Helper()
		if _, err := e.ask(t, fmt.Sprintf(`{"domain":%q,"descriptors":[%s]}`, domain, descriptorJSON(``, key, "v"))); err != nil {
			t.Fatal(err)
		}
	}
	domains := func() (all []any) {
		for _, line := range lines(t, log) {
			if strings.HasPrefix(line["msg"].(string), "unknown domain") {
				all = append(all, line["domain"])
			}
		}
		return all
	}
	ask("shop", "usr")
	ask("shpo", "user")
	if diff := cmp.Diff([]any{"shpo"}, domains()); diff != "" {
		t.Errorf("in one second (-want +got)\n%s", diff)
	}
	for i := range 150 {
		e.clock.advance(time.Second)
		ask("shop", fmt.Sprint("key", i))
	}
	e.clock.advance(time.Second)
	ask("shopp", "user")
	if diff := cmp.Diff([]any{"shopp"}, domains()); diff != "" {
		t.Errorf("after many sets of keys (-want +got)\n%s", diff)
	}
}
