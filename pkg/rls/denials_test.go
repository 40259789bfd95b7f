package rls_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

// logged is an env with a log of denials, and its lines.
func logged(t *testing.T, denials rls.DenialLog) (*env, func() []map[string]any) {
	t.Helper()
	var text bytes.Buffer
	e := newEnv(t, func(c *rls.Config) {
		c.Denials = denials
		c.Logger = slog.New(slog.NewJSONHandler(&text, nil))
	})
	return e, func() []map[string]any {
		t.Helper()
		return slices.DeleteFunc(lines(t, &text), func(m map[string]any) bool { return m["msg"] != "request denied" })
	}
}

func (e *env) askAll(t *testing.T, calls ...string) {
	t.Helper()
	for _, call := range calls {
		if _, err := e.ask(t, call); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDenialsAreLogged(t *testing.T) {
	e, lines := logged(t, rls.DenialLog{PerSecond: 10})
	e.askAll(t,
		descriptor1(`"hitsAddend":"8"`, "api_key", "sk-secret-key-1", "model", "m\n"),
		descriptor1(`"hitsAddend":"4"`, "api_key", "sk-secret-key-1", "model", "m\n"),
		descriptor1(`"hitsAddend":"11"`, "api_key", "b", "model", "m"),
		descriptor1(``, "ghost", "g"),
		`{"domain":"closed","descriptors":[{}]}`,
		descriptor1(``, "trial", "x"), descriptor1(``, "trial", "x"), descriptor1(``, "trial", "x"), // a shadow rule denies nothing
	)
	line := func(pairs ...any) map[string]any {
		m := map[string]any{"level": "INFO", "msg": "request denied", "suppressed": 0.0}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	want := []map[string]any{
		line("domain", "llm", "rule", "requests", "reason", "limit_exhausted", "entity", "key/sk-s...541d663a", "resource", `m\x0a`, "limit", "rpm", "requested", 4.0, "remaining", 2.0, "retry_after", 12.0),
		line("domain", "llm", "rule", "requests", "reason", "exceeds_capacity", "entity", "key/b", "resource", "m", "limit", "rpm", "requested", 11.0, "remaining", 10.0),
		line("domain", "llm", "rule", "ghost", "reason", "limit_not_configured", "entity", "g", "resource", "api", "limit", "nowhere"),
		line("domain", "closed", "reason", "unmatched"),
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNoDenialIsLoggedByDefault(t *testing.T) {
	e, lines := logged(t, rls.DenialLog{})
	e.askAll(t, descriptor1(`"hitsAddend":"11"`, "api_key", "b", "model", "m"))
	if got := lines(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// There are at most PerSecond lines a second, and the other denials are counted.
func TestRateOfLoggedDenials(t *testing.T) {
	e, lines := logged(t, rls.DenialLog{PerSecond: 3, WholeEntity: true})
	denied := descriptor1(`"hitsAddend":"11"`, "api_key", "sk-secret-key-1", "model", "m")
	for range 2 {
		for range 100 {
			e.askAll(t, denied)
		}
		e.clock.advance(time.Second)
	}
	all := lines()
	suppressed := make([]any, 0, len(all))
	for _, line := range all {
		suppressed = append(suppressed, line["suppressed"])
		if line["entity"] != "key/sk-secret-key-1" {
			t.Errorf("entity %v", line["entity"])
		}
	}
	if want := []any{0.0, 0.0, 0.0, 97.0, 0.0, 0.0}; !cmp.Equal(suppressed, want) {
		t.Errorf("suppressed: got %v, want %v", suppressed, want)
	}
}

// Long names of any bytes make no long line.
func TestLoggedDenialsAreBounded(t *testing.T) {
	for _, whole := range []bool{false, true} {
		e, lines := logged(t, rls.DenialLog{PerSecond: 3, WholeEntity: whole})
		long := strings.Repeat("x", 100_000)
		e.askAll(t, descriptor1(`"hitsAddend":"11"`, "api_key", long, "model", long))
		if size := len(fmt.Sprint(lines())); size > 1000 {
			t.Errorf("%d bytes", size)
		}
	}
}
