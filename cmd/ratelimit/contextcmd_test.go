package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/command"
)

// A command asks the service that the nearest of flags, environment and contexts names, and
// shows no token of one service to another.
func TestContextPrecedence(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("RATELIMIT_RUN_DIR", dir)
	t.Chdir(dir)
	socket := func(name string) string { return "unix://" + filepath.Join(dir, name) }
	for _, name := range []string{"used", "named", "variable"} {
		if code, _, stderr := output(t, "context", "add", name, "--server", socket(name+".sock"), "--token-file", "secret"); code != 0 {
			t.Fatal(stderr)
		}
	}
	asks := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := output(t, append([]string{"status"}, args...)...)
		if code != command.ExitSilence || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %s%s; want one that names %s", args, code, stdout, stderr, want)
		}
	}
	asks("no running service was found")
	if code, _, stderr := output(t, "context", "use", "used"); code != 0 {
		t.Fatal(stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	asks("context used: no service answers at ")
	t.Setenv(cli.ContextVariable, "variable")
	asks("variable.sock")
	t.Setenv(cli.ServerVariable, socket("env.sock"))
	asks("env.sock")
	asks(filepath.Join("here", "admin.sock"), "--data", "here")
	asks("named.sock", "--context", "named", "--data", "here")
	asks("flag.sock", "--server", socket("flag.sock"))
	for args, want := range map[string]string{
		"--server unix:///x --context named": "leave one of them out",
		"--context nmaed":                    `did you mean "named"?`,
	} {
		if code, _, stderr := output(t, append([]string{"status"}, strings.Fields(args)...)...); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
}

// Wrong contexts are refused, and leave the file as it was.
func TestContextMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	for args, want := range map[string]string{
		"add a":                                "server is",
		"add a b":                              "one context",
		"add a/b --server https://h":           "the name of a context",
		"add a --server https://u:secret@h":    "server has a password",
		"add a --server https://h --cert x":    "cert and key belong together",
		"use a":                                "there is no context",
		"delete a":                             "there is no context",
		"list -o yml":                          "must be table",
		"lst":                                  `did you mean "list"?`,
		"add a --server https://h --token x":   "unknown flag: --token",
		"add a --server ftp://h --token-env X": "it must be unix",
	} {
		code, _, stderr := output(t, append([]string{"context"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) || strings.Contains(stderr, "secret") {
			t.Errorf("%s: exit code %d, %s; want %s", args, code, stderr, want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("files: %v", entries)
	}
	if code, _, stderr := output(t, "context", "current"); code != command.ExitFailure || !strings.Contains(stderr, "no context is in use") {
		t.Errorf("current: exit code %d, %s", code, stderr)
	}
}

// A context is changed by the flags that are given, and made with a server.
func TestContextSet(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Chdir(dir)
	run := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := output(t, append([]string{"context"}, args...)...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%v: exit code %d, %s%s; want %d, %s", args, got, stdout, stderr, code, want)
		}
	}
	run(0, "context prod saved", "set", "prod", "--server", "https://a:1", "--ca", "ca.pem", "--token-env", "T", "--use")
	run(0, "prod", "current")
	run(command.ExitUsage, `did you mean "prod"?; a new one needs --server`, "set", "prdo", "--ca", "x")
	run(0, "context prod saved", "set", "prod", "--server", "https://b:2", "--token-file", "t")
	run(0, `"server": "https://b:2",
    "ca": "`+filepath.Join(dir, "ca.pem")+`",
    "token_file": "`+filepath.Join(dir, "t")+`"
  }`, "list", "-o", "json")
	run(0, "", "set", "prod", "--ca=", "--namespace", "shop")
	run(0, `"server": "https://b:2",
    "namespace": "shop",
    "token_file"`, "list", "-o", "json")
	run(command.ExitUsage, "cert and key belong together", "set", "prod", "--cert", "c")
}
