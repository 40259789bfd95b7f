package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// perDay is a configuration that admits so many requests of a user a day.
func perDay(n int) string {
	return strings.NewReplacer("2/minute", fmt.Sprintf("%d/day", n)).Replace(programtest.TwoPerMinute)
}

// mirrored returns the count of a result.
func (r *running) mirrored(t *testing.T, result string) string {
	t.Helper()
	_, text := r.get(t, "/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ratelimit_mirror_calls_total") && strings.Contains(line, fmt.Sprintf("result=%q", result)) {
			return strings.Fields(line)[1]
		}
	}
	return "0"
}

// The other service is asked each call too, and differences are counted. A mirror that is gone, or never answers,
// delays no caller.
func TestMirror(t *testing.T) {
	other := start(t, "--config", programtest.WriteFile(t, "other.yaml", perDay(3)))
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", perDay(2)), "--mirror", other.grpc)
	codes := func(want ...int) {
		t.Helper()
		for i, code := range want {
			if got, _ := r.ask(t, "ada"); got != code {
				t.Errorf("call %d: %d, want %d", i, got, code)
			}
		}
	}
	codes(200, 200)
	eventually(t, "two equal answers", func() bool { return r.mirrored(t, "same") == "2" })
	codes(429)
	eventually(t, "a stricter answer", func() bool { return r.mirrored(t, "stricter") == "1" })
	codes(429)
	eventually(t, "a denial of both", func() bool { return r.mirrored(t, "same") == "3" })
	if log := r.log.String(); !strings.Contains(log, "the mirrored service answers differently") || strings.Contains(log, "ada") {
		t.Errorf("the log has no line of the difference, or a value: %s", log)
	}

	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	r = start(t, "--config", programtest.WriteFile(t, "d.yaml", "mirror: {address: '"+silent.Addr().String()+"', timeout: 50ms}\n"+perDay(2)))
	codes(200, 200, 429)
	eventually(t, "errors", func() bool { return r.mirrored(t, "error") == "3" })
	if code, _, stderr := output(t, "serve", "--demo", "--mirror", "x"); code != 2 || !strings.Contains(stderr, "--mirror is") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
