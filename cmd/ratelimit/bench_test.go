package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// A load takes tokens of each key that it draws, and its report counts every answer.
func TestBench(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", withRate("3/hour")))
	bench := func(args ...string) (int, string, string) {
		return output(t, append([]string{"bench", "shop", "user=u-{n}", "--address", r.grpc, "--requests", "20", "--deadline", "30s"}, args...)...)
	}
	code, stdout, stderr := bench()
	if code != command.ExitOK || !strings.HasPrefix(stdout, "20 answers in ") || !regexp.MustCompile(`\n +3  OK\n +17  OVER_LIMIT\n`).MatchString(stdout) || !strings.Contains(stdout, "99.9 %") {
		t.Errorf("one key: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = bench("--keys", "1000000", "--rate", "1000", "--workers", "5", "--connections", "2")
	if code != command.ExitOK || !regexp.MustCompile(`\n +20  OK\n`).MatchString(stdout) {
		t.Errorf("many keys: exit code %d\n%s%s", code, stdout, stderr)
	}
	for args, want := range map[string]string{
		"--workers 0": "--workers is 0", "--rate -1": "--rate is -1", "--duration 2h": "--duration is 2h", "--draw x": "even or zipf",
		"--ca x": "add --tls", "--tls --ca nowhere": "--ca: ", "--deadline 0s": "--deadline is 0s",
	} {
		if code, _, stderr := bench(strings.Fields(args)...); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
	if code, stdout, stderr := output(t, "bench", "shop", "user=ada", "--address", "127.0.0.1:1", "--requests", "1"); code != command.ExitSilence || !strings.Contains(stdout, "1  Unavailable") {
		t.Errorf("no service: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := output(t, "bench", "shop", "user=ada", "--address", "127.0.0.1:1", "--duration", "1h"); code != command.ExitSilence || !strings.Contains(stderr, "no rate limit service answers at 127.0.0.1:1: start it") {
		t.Errorf("no service for an hour: exit code %d\n%s%s", code, stdout, stderr)
	}
}
