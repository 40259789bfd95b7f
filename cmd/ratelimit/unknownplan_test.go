package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// A plan that a reload takes away from stored entities is told where the entity is looked at, with the limits that count.
func TestAPlanThatIsGoneIsTold(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", kindly)
	r := start(t)
	r.adminURL(t)
	asks(t, command.ExitOK, nil, "set", "entity", "org/bobs", "--plan", "pro")
	asks(t, command.ExitOK, nil, "set", "entity", "user/bob", "--plan", "pro", "--parent", "org/bobs", "--cascade")
	doctor := []string{"doctor", "--entity", "user/bob", "--resource", "web"}
	asks(t, command.ExitOK, []string{"rpm 4/hour, plan pro"}, doctor...)
	if _, _, stderr := output(t, "get", "entity", "user/bob"); stderr != "" {
		t.Errorf("get entity says %q", stderr)
	}

	place(t, "ratelimit.yaml", strings.NewReplacer("  pro: {rpm: 4/hour, exports: 3/day}\n", "", "user/ada: {plan: pro}", "user/ada: {plan: free}").Replace(kindly))
	hangUp(t)
	eventually(t, "the reload", func() bool { return strings.Contains(r.log.String(), "configuration loaded") })
	if log := r.log.String(); !strings.Contains(log, `msg="plans are gone from the configuration`) || !strings.Contains(log, "plans=[pro]") {
		t.Errorf("the log does not tell of the plan:\n%s", log)
	}
	const gone = " has the plan pro, which the configuration in force does not have"
	asks(t, command.ExitOK, []string{"note: entity user/bob" + gone}, "get", "entity", "user/bob")
	asks(t, command.ExitFailure, []string{
		"wrong  Limit not enforced     entity user/bob" + gone, "wrong  Limit not enforced     entity org/bobs" + gone,
		"next: a plan of this name in the file; or another: ratelimit set entity user/bob --plan NAME", "rpm 1/hour, kind (file)",
	}, doctor...)
	asks(t, command.ExitOK, nil, "set", "entity", "user/bob", "--plan", "free")
	asks(t, command.ExitOK, nil, "set", "entity", "org/bobs", "--plan=")
	asks(t, command.ExitOK, []string{"rpm 2/hour, plan free"}, doctor...)
}

// A start with a data directory tells of such plans, too.
func TestAStartTellsOfPlansThatAreGone(t *testing.T) {
	dir := t.TempDir()
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", kindly), "--data", dir)
	if code, _, stderr := output(t, "set", "entity", "org/bobs", "--plan", "pro", "--data", dir); code != command.ExitOK {
		t.Fatal(stderr)
	}
	if log := r.log.String(); strings.Contains(log, "plans are gone") {
		t.Errorf("with the plan:\n%s", log)
	}
	r.stop(command.ErrInterrupted)
	if code := <-r.code; code != command.ExitOK {
		t.Fatalf("the first service ends with %d", code)
	}
	without := strings.NewReplacer("  pro: {rpm: 4/hour, exports: 3/day}\n", "", "user/ada: {plan: pro}", "user/ada: {plan: free}").Replace(kindly)
	r = start(t, "--config", programtest.WriteFile(t, "without.yaml", without), "--data", dir)
	if log := r.log.String(); !strings.Contains(log, "plans are gone from the configuration") || !strings.Contains(log, "plans=[pro]") {
		t.Errorf("without the plan:\n%s", log)
	}
}
