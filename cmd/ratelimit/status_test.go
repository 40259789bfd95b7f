package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// watched has a rule that consumes a limit which no level defines.
const watched = `
limits: {system: {rpm: 60/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, stored: expected, consume: {rpm: 1, rpn: 1}}
`

// A configuration that is refused, a limit that no level defines and a service that is not ready are in the status
// and in the diagnosis, with the next step and an exit code of 1. Both are well before and after.
func TestStatusHasWhatNeedsAPerson(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Chdir(dir)
	file := programtest.WriteFile(t, "c.yaml", "store: {embedded: {data: "+filepath.Join(dir, "data")+"}}\n"+watched)
	r := start(t, "--config", file)
	server := r.adminURL(t)
	shows := func(code int, wants ...string) {
		t.Helper()
		for _, name := range []string{"status", "doctor"} {
			got, stdout, stderr := output(t, name, "--server", server)
			if got != code || stderr != "" {
				t.Fatalf("%s: exit code %d, %s; want %d\n%s", name, got, stderr, code, stdout)
			}
			for _, want := range wants {
				if !strings.Contains(stdout, want) {
					t.Errorf("%s shows\n%s\nwant %s", name, stdout, want)
				}
			}
		}
	}
	becomes := func(code int) {
		t.Helper()
		eventually(t, "another status", func() bool {
			got, _, _ := output(t, "status", "--server", server)
			return got == code
		})
	}
	shows(command.ExitOK)
	r.ask(t, "ada")
	shows(command.ExitFailure, "requests consume the limit rpn, which no level defines", "next: correct the name in the rule, or define the limit: ratelimit set limits --system rpn=RATE")
	if code, stdout, stderr := output(t, "set", "limits", "--system", "rpn=9/minute", "--server", server); code != command.ExitOK {
		t.Fatalf("%s%s", stdout, stderr)
	}
	shows(command.ExitOK)

	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(good) + "nothing: such\n")
	becomes(command.ExitFailure)
	shows(command.ExitFailure, "newer files of the configuration are refused", "c.yaml:", "next: ratelimit check --config "+file)
	// the file with mistakes still leads to the service
	if code, stdout, stderr := output(t, "status", "--config", file); code != command.ExitFailure || !strings.Contains(stdout, "refused:") {
		t.Errorf("with the file: exit code %d\n%s%s", code, stdout, stderr)
	}
	write(string(good))
	becomes(command.ExitOK)

	files, err := filepath.Glob(filepath.Join(dir, "data", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("data files %v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	becomes(command.ExitFailure)
	shows(command.ExitFailure, "the service is not ready: the data file is gone")
}

// The doctor says why an entity is denied: by its own bucket, by that of a parent, or because a parent is disabled.
func TestDoctorSaysWhyAnEntityIsDenied(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", strings.NewReplacer(", rpn: 1", "", "rpm: 60/minute", "rpm: 2/day").Replace(watched)))
	run := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := output(t, append(args, "--server", r.adminURL(t))...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Fatalf("%v: exit code %d, want %d and %s\n%s%s", args, got, code, want, stdout, stderr)
		}
	}
	ada := []string{"doctor", "--entity", "user/ada", "--resource", "api"}
	run(command.ExitUsage, "give --entity too", "doctor", "--resource", "api")
	run(command.ExitOK, "no bucket of entity user/ada is in use", ada...)
	r.ask(t, "ada")
	run(command.ExitOK, "entity user/ada for resource api has tokens of each limit", ada...)
	r.ask(t, "ada")
	run(command.ExitFailure, "wrong  Unexpected denial      entity user/ada for resource api: limit rpm 2/day is used up", ada...)
	run(command.ExitOK, "", "reset", "bucket", "--entity", "user/ada", "--resource", "api")
	run(command.ExitOK, "", "set", "entity", "user/ada", "--parent", "org/acme", "--cascade", "--allow-new")
	for range 2 {
		r.ask(t, "ada")
	}
	run(command.ExitFailure, "wrong  Cascade                entity org/acme for resource api: limit rpm 2/day is used up", ada...)
	run(command.ExitOK, "", "disable", "entity", "org/acme")
	run(command.ExitFailure, "entity org/acme is disabled: requests of user/ada are denied", ada...)
	run(command.ExitOK, "", "enable", "entity", "org/acme")
	run(command.ExitOK, "", "set", "limits", "--entity", "user/eve", "rpm=unlimited")
	run(command.ExitFailure, "entity user/eve is unlimited: rpm unlimited, entity default (stored)", "doctor", "--entity", "user/eve")
}

// The doctor tells of denials that no top has: of a disabled entity, by a rule, and without a rule.
func TestDoctorSeesDenialsWithoutALimit(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", "unmatched: deny\n"+strings.Replace(watched, ", rpn: 1", "", 1)+
		"- domain: blocked\n  rules: [{name: all, match: {user: \"*\"}, deny: true}]\n"))
	doctor := func(code int, want string) {
		t.Helper()
		if got, stdout, stderr := output(t, "doctor", "--server", r.adminURL(t)); got != code || !strings.Contains(stdout, want) {
			t.Fatalf("exit code %d, want %d and %s\n%s%s", got, code, want, stdout, stderr)
		}
	}
	denied := func(domain string) {
		t.Helper()
		if status, _ := r.call(t, `{"domain":"`+domain+`","descriptors":[{"entries":[{"key":"user","value":"ada"}]}]}`); status != http.StatusTooManyRequests {
			t.Fatalf("%s: status %d", domain, status)
		}
	}
	denied("shpo")
	doctor(command.ExitFailure, "wrong  Limit not enforced     no rule matched a descriptor since the start: 1 came, and 1 of them were denied")
	r.ask(t, "ada")
	doctor(command.ExitOK, "1 of 2 descriptors since ")
	denied("blocked")
	if code, stdout, stderr := output(t, "disable", "entity", "user/ada", "--server", r.adminURL(t)); code != command.ExitOK {
		t.Fatalf("%s%s", stdout, stderr)
	}
	denied("shop")
	doctor(command.ExitOK, "by something else than a used-up limit: 1 denied_by_rule, 1 disabled")
}
