package config_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// delivery is one call of apply.
type delivery struct {
	cfg *config.Config
	err error
}

// watched is a configuration in a directory of its own, and a Watch of it that
// ends with the test.
type watched struct {
	path string
	ask  chan struct{}
	got  chan delivery
}

// startWatch loads dir/ratelimit.yaml, or the shipped configuration. It watches by events alone,
// with short times.
func startWatch(t *testing.T, dir string, o config.Options) *watched {
	t.Helper()
	w := &watched{ask: make(chan struct{}), got: make(chan delivery, 16)}
	if !o.Demo {
		w.path = filepath.Join(dir, "ratelimit.yaml")
	}
	current, err := config.Load(w.path, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Current, o.Debounce, o.Poll = current, 5*time.Millisecond, time.Hour
	o.Still, o.Gone = stdcmp.Or(o.Still, 20*time.Millisecond), 50*time.Millisecond
	o.Reload = w.ask
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- config.Watch(ctx, w.path, o, func(c *config.Config, err error) { w.got <- delivery{c, err} })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch: %v", err)
		}
	})
	return w
}

// until waits for a delivery that matches. Others may come before it, as Watch may read a file
// half-written.
func (w *watched) until(t *testing.T, what string, ok func(delivery) bool) delivery {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case d := <-w.got:
			if ok(d) {
				return d
			}
		case <-deadline:
			t.Fatalf("not delivered: %s", what)
		}
	}
}

// untilDomains waits for a configuration with these domains.
func (w *watched) untilDomains(t *testing.T, want string) *config.Config {
	t.Helper()
	return w.until(t, "the domains "+want, func(d delivery) bool { return d.err == nil && domains(d.cfg) == want }).cfg
}

func (w *watched) untilError(t *testing.T, want string) {
	t.Helper()
	w.until(t, want, func(d delivery) bool { return d.cfg == nil && d.err.Error() == want })
}

func (w *watched) untilGone(t *testing.T, name string) {
	t.Helper()
	w.untilError(t, name+": does not exist")
}

// replace puts a file in place with a rename, as editors do.
func replace(t *testing.T, name, data string) {
	t.Helper()
	write(t, name+".new", data)
	rename(t, name+".new", name)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestWatchWriteRenameRemove(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ratelimit.yaml")
	write(t, file, "domains: [{domain: one}]\n")
	w := startWatch(t, dir, config.Options{})
	write(t, file, "domains: [{domain: two}]\n")
	w.untilDomains(t, "two")
	replace(t, file, "domains: [{domain: three}]\n")
	w.untilDomains(t, "three")
	replace(t, file, "domains: [{domain: four}]\n")
	w.untilDomains(t, "four")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.untilGone(t, file)
	write(t, file, "domains: [{domain: four}]\n")
	w.untilDomains(t, "four")
}

func TestWatchHalfWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ratelimit.yaml")
	good := "domains:\n- domain: api\n  rules:\n  - {match: {a: b}, unlimited: true}\n"
	write(t, file, good)
	w := startWatch(t, dir, config.Options{})
	write(t, file, good[:len(good)-10])
	w.until(t, "what is wrong with the half", func(d delivery) bool {
		var problems yamlcfg.Problems
		return d.cfg == nil && errors.As(d.err, &problems) && problems[0].File == file
	})
	write(t, file, good) // the same as before: delivered, as the error is over
	w.untilDomains(t, "api")
}

// TestWatchConfigMap swaps the ..data link of a mounted ConfigMap, twice.
func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, data string) {
		t.Helper()
		write(t, filepath.Join(dir, ".."+version, "ratelimit.yaml"), "include: [{path: 'rules-*.yaml'}]\n")
		write(t, filepath.Join(dir, ".."+version, "rules-a.yaml"), data)
		link(t, ".."+version, filepath.Join(dir, "..data_tmp"))
		rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
	}
	mount("1", "domain: one\n")
	link(t, "..data/ratelimit.yaml", filepath.Join(dir, "ratelimit.yaml"))
	link(t, "..data/rules-a.yaml", filepath.Join(dir, "rules-a.yaml"))
	w := startWatch(t, dir, config.Options{})
	mount("2", "domain: two\n")
	w.untilDomains(t, "two")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	mount("3", "domain: three\n")
	w.untilDomains(t, "three")
}

// TestWatchLinkedDirectory swaps a link far above the file.
func TestWatchLinkedDirectory(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "releases", "1", "etc", "ratelimit.yaml"), "domains: [{domain: one}]\n")
	write(t, filepath.Join(top, "releases", "2", "etc", "ratelimit.yaml"), "domains: [{domain: two}]\n")
	link(t, "releases/1", filepath.Join(top, "current"))
	w := startWatch(t, filepath.Join(top, "current", "etc"), config.Options{})
	link(t, filepath.Join(top, "releases", "2"), filepath.Join(top, "next"))
	rename(t, filepath.Join(top, "next"), filepath.Join(top, "current"))
	w.untilDomains(t, "two")
	write(t, filepath.Join(top, "releases", "2", "etc", "ratelimit.yaml"), "domains: [{domain: three}]\n")
	w.untilDomains(t, "three")
}

func TestWatchNewFiles(t *testing.T) {
	dir, rules := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "ratelimit.yaml"), "{include: [{path: 'rules.d/*.yaml'}], domains: [{domain: m}]}\n")
	w := startWatch(t, dir, config.Options{Rules: []string{rules}})
	write(t, filepath.Join(dir, "rules.d", "a.yaml"), "domain: a\n") // the directory is new too
	w.untilDomains(t, "m a")
	write(t, filepath.Join(rules, "team", "z.yaml"), "domain: z\n")
	w.untilDomains(t, "m a z")
	write(t, filepath.Join(rules, "team", "y.yaml"), "domain: y\n")
	w.untilDomains(t, "m a y z")
	if err := os.RemoveAll(filepath.Join(dir, "rules.d")); err != nil {
		t.Fatal(err)
	}
	w.until(t, "that the domain a is gone", func(d delivery) bool {
		gone, ok := errors.AsType[*config.GoneError](d.err)
		return ok && len(gone.Domains) == 1 && gone.Domains[0] == "a"
	})
	w.untilDomains(t, "m y z")
	write(t, filepath.Join(dir, "rules.d", "b.yaml"), "domain: b\n")
	w.untilDomains(t, "m b y z")
}

func TestWatchRulesBesideTheShippedConfiguration(t *testing.T) {
	rules := t.TempDir()
	w := startWatch(t, "", config.Options{Rules: []string{rules}, Demo: true})
	write(t, filepath.Join(rules, "a.yaml"), "domain: a\n")
	w.untilDomains(t, "llm-gateway a")
}

func TestWatchChangedBeforeItStarted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ratelimit.yaml")
	write(t, file, "domains: [{domain: one}]\n")
	current, err := config.Load(file, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	replace(t, file, "domains: [{domain: one}, {domain: two}]\n")
	ctx, cancel := context.WithCancel(t.Context())
	err = config.Watch(ctx, file, config.Options{Current: current, Still: time.Millisecond}, func(c *config.Config, err error) {
		if err != nil || domains(c) != "one two" {
			t.Errorf("got %v, %v", c, err)
		}
		cancel()
	})
	if err != nil || ctx.Err() == nil {
		t.Errorf("Watch returned %v", err)
	}
}

func TestWatchNeedsRestart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ratelimit.yaml")
	write(t, file, "domains: [{domain: x, unmatched: deny}]\nserver: {grpc: {address: ':1'}}\n")
	w := startWatch(t, dir, config.Options{})
	replace(t, file, "domains: [{domain: x, unmatched: deny}]\nserver:\n  grpc: {address: ':2'}\nstore: {embedded: {max_buckets: 7}}\ndecision: {on_unavailable: deny}\ndrain: 1s\n")
	const text = "has changed since the start of the program: it takes effect at the next start"
	want := yamlcfg.Problems{
		{File: file, Line: 3, Column: 9, Path: "server.grpc", Text: text, Warning: true},
		{File: file, Line: 4, Column: 8, Path: "store", Text: text, Warning: true},
		{File: file, Line: 6, Column: 8, Path: "drain", Text: text, Warning: true},
	}
	if diff := cmp.Diff(want, w.untilDomains(t, "x").Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	replace(t, file, "domains: [{domain: y, unmatched: deny}]\n") // the key is gone, the default differs
	want = yamlcfg.Problems{{File: file, Path: "server.grpc", Text: text, Warning: true}}
	if diff := cmp.Diff(want, w.untilDomains(t, "y").Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	replace(t, file, "domains: [{domain: z, unmatched: deny}]\nserver: {grpc: {address: ':1'}}\n")
	if warnings := w.untilDomains(t, "z").Warnings; len(warnings) > 0 {
		t.Errorf("back at the configuration of the start, it warns: %v", warnings)
	}
}

// TestWatchMovedIsReadAtOnce moves files into their places. They are complete at once, however long
// Watch waits for files that are written in place.
func TestWatchMovedIsReadAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ratelimit.yaml")
	write(t, file, "{include: [{path: 'rules.d/*.yaml'}], domains: [{domain: one}]}\n")
	write(t, filepath.Join(dir, "rules.d", "a.yaml"), "domain: a\n")
	w := startWatch(t, dir, config.Options{Still: time.Hour})
	w.ask <- struct{}{}
	w.untilDomains(t, "one a") // Watch is running
	replace(t, file, "{include: [{path: 'rules.d/*.yaml'}], domains: [{domain: one}, {domain: two}]}\n")
	w.untilDomains(t, "one two a")
	replace(t, filepath.Join(dir, "rules.d", "b.yaml"), "domain: b\n")
	w.untilDomains(t, "one two a b")
	write(t, filepath.Join(dir, "..2", "c.yaml"), "domain: c\n")
	link(t, filepath.Join(dir, "..2"), filepath.Join(dir, "..data"))
	link(t, "../..data/c.yaml", filepath.Join(dir, "rules.d", "c.yaml"))
	w.untilDomains(t, "one two a b c")
	write(t, filepath.Join(dir, "..3", "c.yaml"), "domains: [{domain: c}, {domain: d}]\n")
	link(t, filepath.Join(dir, "..3"), filepath.Join(dir, "..tmp"))
	rename(t, filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))
	w.untilDomains(t, "one two a b c d")
}
