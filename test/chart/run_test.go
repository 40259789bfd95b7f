package chart_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// configFiles returns the files of the only ConfigMap.
func configFiles(t *testing.T, objects map[string]any) map[string]string {
	t.Helper()
	for _, object := range objects {
		if c, ok := object.(*core.ConfigMap); ok {
			return c.Data
		}
	}
	t.Fatal("there is no ConfigMap")
	return nil
}

// mountConfig puts files where a pod would have them: in a directory with a link to them,
// which swaps when they change.
func mountConfig(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, version, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(version, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// wantInOrder checks that the program takes a configuration without a warning.
func wantInOrder(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	mountConfig(t, dir, "..1", files)
	check := exec.CommandContext(t.Context(), os.Getenv(envoytest.ProgramVariable), "check", "--config", filepath.Join(dir, "ratelimit.yaml"))
	out, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) { // the certificates are not on this machine
		if strings.HasPrefix(line, "warning:") && !strings.HasPrefix(line, "warning: server.grpc.tls.") && !strings.HasPrefix(line, "warning: server.admin.tls.") {
			t.Error(line)
		}
	}
}

// The program takes the configuration of every mode without a warning.
func TestCheck(t *testing.T) {
	for name, v := range modes(t) {
		t.Run(name, func(t *testing.T) { wantInOrder(t, configFiles(t, rendered(t, v))) })
	}
}

// The text of a file, as --set-file gives it, becomes the configuration, and a number
// stays the number that it is.
func TestConfigAsText(t *testing.T) {
	v := modes(t)["memory"]
	text := "plans: {big: {tpm: 1000000000000/minute}}\nlimits: {system: {tpm: {rate: 20000000/day, burst: 20000000}}}\ndomains: [{domain: api}]\n"
	got := configFiles(t, rendered(t, with(v, "config", text)))["ratelimit.yaml"]
	for _, want := range []string{"burst: 20000000\n", "rate: 20000000/day\n", "tpm: 1000000000000/minute\n", "drain: 10s\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// running is the container of a mode, with its mounts in directories of the test.
type running struct {
	t       *testing.T
	process *exec.Cmd
	root    string // where the paths of the container are
	config  string // where its ConfigMap is mounted
	http    string // address
	log     *os.File
}

// run starts the service of a mode, on ports that are free.
func run(t *testing.T, program string, objects map[string]any) *running {
	t.Helper()
	r := contain(t, program, objects, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	r.start()
	return r
}

// contain returns the container of a mode as Kubernetes starts it, with its arguments, its
// environment and its volumes. The given addresses replace those of its configuration.
func contain(t *testing.T, program string, objects map[string]any, addresses ...string) *running {
	t.Helper()
	container := pod(t, objects).Spec.Containers[0]
	r := &running{t: t, root: shortDir(t)}
	for _, mount := range container.VolumeMounts {
		dir := filepath.Join(r.root, mount.MountPath)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil { // as an emptyDir is
			t.Fatal(err)
		}
		if mount.Name == "config" {
			r.config = dir
		}
	}
	r.mount("..1", configFiles(t, objects))
	args := make([]string, 0, len(container.Args)+len(addresses))
	for _, arg := range container.Args {
		flag, value, found := strings.Cut(arg, "=")
		if found {
			arg = flag + "=" + r.path(value)
		}
		args = append(args, r.path(arg))
	}
	r.process = exec.CommandContext(t.Context(), program, append(args, addresses...)...)
	r.process.Env = append(os.Environ(), "TMPDIR="+filepath.Join(r.root, "none"))
	for _, variable := range container.Env {
		r.process.Env = append(r.process.Env, variable.Name+"="+r.path(variable.Value))
	}
	return r
}

// shortDir returns a directory whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl") //nolint:usetesting // the test's own has its name in it, and a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// path returns where a path of the container is in the test.
func (r *running) path(s string) string {
	if strings.HasPrefix(s, "/") {
		return filepath.Join(r.root, s)
	}
	return s
}

// mount puts a version of the configuration in place, its data directory in the test's.
func (r *running) mount(version string, files map[string]string) {
	r.t.Helper()
	moved := make(map[string]string, len(files))
	for name, text := range files {
		for _, key := range []string{"data: ", "password_file: "} {
			text = strings.ReplaceAll(text, key+"/", key+r.root+"/")
		}
		moved[name] = text
	}
	mountConfig(r.t, r.config, version, moved)
}

// start starts the service and waits for the address of its HTTP side.
func (r *running) start() {
	r.t.Helper()
	out, err := r.process.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.begin()
	lines := bufio.NewScanner(out)
	lines.Scan()
	found := regexp.MustCompile(`HTTP on (\S+)`).FindStringSubmatch(lines.Text())
	if found == nil {
		r.t.Fatalf("the service did not start: %s", r.logged())
	}
	r.http = found[1]
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
}

// begin starts the process, which ends with the test, with its log in a file.
func (r *running) begin() {
	r.t.Helper()
	log, err := os.Create(filepath.Join(r.root, "log"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.log, r.process.Stderr = log, log
	if err := r.process.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = r.process.Process.Kill()
		_ = r.process.Wait()
		_ = log.Close()
	})
}

func (r *running) logged() string {
	text, err := os.ReadFile(r.log.Name())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// get asks the HTTP side.
func (r *running) get(path string) (code int, body string, err error) {
	ctx, stop := context.WithTimeout(r.t.Context(), 5*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.http+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// await calls done until it reports success.
func await(t *testing.T, event string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", event, err)
		}
		<-tick.C
	}
}

// The container of each mode that needs no table starts and answers its probes. It
// has its admin socket and the metrics of the alerts, and reads a ConfigMap that
// changes.
func TestContainerRuns(t *testing.T) {
	t.Parallel()
	program := os.Getenv(envoytest.ProgramVariable)
	for name, socket := range map[string]string{"memory": "/run/ratelimit/own/admin.sock", "durable": "/var/lib/ratelimit/data/admin.sock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := with(modes(t)[name], "prometheusRule.enabled", true)
			objects := rendered(t, v)
			r := run(t, program, objects)
			container := pod(t, objects).Spec.Containers[0]
			for _, probe := range []*core.Probe{container.LivenessProbe, container.ReadinessProbe} {
				await(t, probe.HTTPGet.Path, func() error {
					if code, _, err := r.get(probe.HTTPGet.Path); err != nil || code != http.StatusOK {
						return fmt.Errorf("got %d, %w", code, err)
					}
					return nil
				})
			}
			if info, err := os.Stat(r.path(socket)); err != nil || info.Mode()&os.ModeSocket == 0 {
				t.Errorf("%s: got %v; %s", socket, err, r.logged())
			}
			if name == "durable" {
				backsUp(t, r)
			}
			reloads(t, r, v)
			stops(t, r)
		})
	}
}

// backsUp makes a backup as the notes say, without a directory for temporary files.
func backsUp(t *testing.T, r *running) {
	t.Helper()
	backup := exec.CommandContext(t.Context(), r.process.Path, "backup", "--data", r.path("/var/lib/ratelimit/data"), "--output", "-")
	backup.Env = r.process.Env
	var stderr strings.Builder
	backup.Stderr = &stderr
	if out, err := backup.Output(); err != nil || len(out) == 0 {
		t.Errorf("backup: %d bytes, %v\n%s", len(out), err, stderr.String())
	}
}

// reloads changes the ConfigMap, and waits until the service uses it.
func reloads(t *testing.T, r *running, v values) {
	t.Helper()
	_, before, err := r.get("/readyz")
	if err != nil {
		t.Fatal(err)
	}
	r.mount("..2", configFiles(t, rendered(t, with(v, "config.headers", []any{"ietf"}))))
	await(t, "the changed ConfigMap", func() error {
		code, after, err := r.get("/readyz")
		if err != nil || code != http.StatusOK || hashOf(after) == hashOf(before) {
			return fmt.Errorf("got %d %s, %w; before %s", code, after, err, before)
		}
		return nil
	})
}

// hashOf returns the hash of the configuration from /readyz.
func hashOf(readiness string) string {
	return regexp.MustCompile(`"hash": *"[^"]*"`).FindString(readiness)
}

// stops ends the service as Ctrl-C does, which needs no drain.
func stops(t *testing.T, r *running) {
	t.Helper()
	if err := r.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := r.process.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, r.logged())
	}
}

// The grace period of the pods has room for all that the program waits for at its end.
func TestGracePeriod(t *testing.T) {
	server := filepath.Join("..", "..", "internal", "server")
	var files strings.Builder // that begin and end the service
	for _, name := range []string{"build.go", "run.go", "service.go"} {
		files.WriteString(readFile(t, server, name))
	}
	source := files.String()
	seconds := func(name string) time.Duration {
		said := regexp.MustCompile(name + `(\d+ \* )?time\.Second`).FindStringSubmatch(source)
		if said == nil {
			t.Fatalf("internal/server does not say %q", name)
		}
		step, err := time.ParseDuration(cmp.Or(strings.TrimSuffix(said[1], " * "), "1") + "s")
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	// calls, administration and HTTP in one loop, the ledger; both stores; the last spans
	steps := strings.Count(source, ", s.quiet)") + strings.Count(source, ", s.quiet, ") + strings.Count(source, "[]*http.Server{s.admin.server, s.http.server}")
	stores := strings.Count(source, "min(s.quiet, storeTime)")
	if steps != 4 || stores != 2 {
		t.Errorf("the end has %d steps and %d stores, want 4 and 2 as the template's comment has", steps, stores)
	}
	all := time.Duration(steps)*seconds(`quiet: `) + time.Duration(stores)*seconds(`storeTime = `) + seconds(`traceTime = `)
	for _, drain := range []int{0, 10, 45, 3600} {
		objects := rendered(t, with(modes(t)["memory"], "drainSeconds", drain))
		if text, want := configFiles(t, objects)["ratelimit.yaml"], fmt.Sprintf("drain: %ds\n", drain); !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
		grace := time.Duration(*pod(t, objects).Spec.TerminationGracePeriodSeconds) * time.Second
		if need := time.Duration(drain)*time.Second + all; grace <= need {
			t.Errorf("drain of %d s: the grace period is %v, want more than %v", drain, grace, need)
		}
	}
}
