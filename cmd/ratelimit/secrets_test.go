package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// canary is a secret, of which no output may have as much as leak bytes in a row.
const (
	canary = "c2VjcmV0Y2FuYXJ5/+ZGFuY2luZ2luYW1pbmU5MTM3MjQ2ODE5MDI3MzQ2ODU=="
	leak   = 8
)

func mustNotLeak(t *testing.T, what, text string) {
	t.Helper()
	for i := 0; i+leak <= len(canary); i++ {
		if part := canary[i:][:leak]; strings.Contains(text, part) {
			t.Errorf("%s has %q of the secret:\n%s", what, part, text)
			return
		}
	}
}

// TestSecretsStayInTheFile writes a secret to wrong places of a file, and reads all that
// the program says. Package config tries each place with each mistake.
func TestSecretsStayInTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	save := func(name, text string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	save("c.yaml", programtest.TwoPerMinute)
	save("secret", canary)
	r := start(t, "--config", file)
	for _, wrong := range []string{
		"reservation: {keys: KEY}", "reservation: KEY", "reservation: {keys: [{file: KEY}]}", "reservation: {keys: [KEY]}", "reservation: {KEY}",
		"reservation: {keys: [{KEY: x}]}", "reservation: {keys: [*KEY]}", "reservation: {keys: ['KEY", "reservation: {keys: [{file: secret}]}",
		"server: {grpc: {tls: KEY}}", "server: {http: {tls: {cert: [KEY]}}}", "include: [{path: secret}]", "KEY",
	} {
		wrong = strings.ReplaceAll(wrong, "KEY", canary)
		text := wrong + programtest.TwoPerMinute
		if wrong == canary {
			text = wrong
		}
		eventually(t, "the file before", func() bool {
			_, body := r.get(t, "/readyz")
			return !strings.Contains(body, `"error"`)
		})
		save("c.yaml", text)
		var ready string
		eventually(t, "the mistake at /readyz", func() bool {
			_, ready = r.get(t, "/readyz")
			return strings.Contains(ready, `"error"`)
		})
		mustNotLeak(t, "/readyz with "+wrong, ready)
		for _, args := range [][]string{{"check", "-c", file}, {"explain", "-c", file, "shop", "user=ada"}, {"serve", "-c", file}} {
			code, stdout, stderr := output(t, args...)
			if code != command.ExitUsage {
				t.Errorf("%v with %s: exit code %d", args, wrong, code)
			}
			mustNotLeak(t, args[0]+" with "+wrong, stdout+stderr)
		}
		save("c.yaml", programtest.TwoPerMinute)
	}
	_, metrics := r.get(t, "/metrics")
	mustNotLeak(t, "/metrics", metrics)
	if log := r.log.String(); strings.Count(log, "the new configuration is not used") < 13 {
		t.Errorf("the log lacks mistakes:\n%s", log)
	} else {
		mustNotLeak(t, "the log", log)
	}
}

// A private key where the name of its file belongs is found when the listener starts.
func TestKeysForNamesOfFilesAreNotRepeated(t *testing.T) {
	pem := "\"-----BEGIN PRIVATE KEY-----\\n" + canary + "\\n-----END PRIVATE KEY-----\""
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	for _, tls := range []string{
		"{cert: " + pem + ", key: " + pem + "}", "{cert: " + id.Cert + ", key: " + pem + "}", "{cert: " + id.Cert + ", key: " + canary + "}",
		"{cert: " + id.Cert + ", key: " + id.Key + ", client_ca: " + canary + "}",
	} {
		for _, listener := range []string{"grpc", "http"} {
			file := programtest.WriteFile(t, "c.yaml", "server: {"+listener+": {tls: "+tls+"}}\n"+programtest.TwoPerMinute)
			code, stdout, stderr := output(t, "serve", "-c", file, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
			if code != command.ExitFailure || !strings.Contains(stderr, "server."+listener+".tls.") {
				t.Errorf("%s: exit code %d\n%s", tls, code, stderr)
			}
			mustNotLeak(t, "serve", stdout+stderr)
			_, stdout, stderr = output(t, "check", "-c", file)
			mustNotLeak(t, "check", stdout+stderr)
		}
	}
}
