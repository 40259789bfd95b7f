package operate_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// publicAddress is the HTTP address that pages write.
const publicAddress = "127.0.0.1:8080"

// place is a directory in which programs and commands run.
type place struct {
	dir string
	env []string // of programs and commands
}

// newPlace makes a directory with the program on its path.
func newPlace(tb testing.TB) *place {
	tb.Helper()
	p := &place{dir: tb.TempDir()}
	bin, run := filepath.Join(p.dir, "bin"), filepath.Join(p.dir, "run")
	for _, err := range []error{
		os.Mkdir(bin, 0o700), os.Mkdir(run, 0o700),
		os.Symlink(os.Getenv(envoytest.ProgramVariable), filepath.Join(bin, "ratelimit")),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	p.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RATELIMIT_RUN_DIR="+run, "HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir, "TZ=UTC", "LC_ALL=C")
	return p
}

// write writes a file of the place.
func (p *place) write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// with is the place with another variable of the environment.
func (p *place) with(variable string) *place {
	return &place{dir: p.dir, env: append(slices.Clone(p.env), variable)}
}

// shell runs a command in the place and returns its output, on both streams.
func (p *place) shell(tb testing.TB, command string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.WaitDelay = patience         // what the command started may outlive it
	out, err := cmd.CombinedOutput() // the exit code is shown by commands that end in echo $?
	if len(out) == 0 && err != nil {
		tb.Errorf("%s: %v, without a word", command, err)
	}
	text := string(out)
	if strings.Contains(text, p.dir) {
		inColumn := regexp.MustCompile(regexp.QuoteMeta(p.dir) + `.* {2,}`).MatchString(text)
		text = strings.ReplaceAll(text, p.dir, "/srv")
		if inColumn {
			text = gap.ReplaceAllString(text, "  ")
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// gap is the space between two columns of a table. The length of a directory's name is at
// random, and with it the width of a column before the last: columns are two spaces apart there.
var gap = regexp.MustCompile(` {2,}`)

// service is a program that answers the commands of a page.
type service struct {
	*place

	http, grpc string // addresses
	process    int    // its ID
	socket     string // of administration
}

// startService starts the program with a configuration, in a directory of its own.
func startService(tb testing.TB, config string, flags ...string) *service {
	tb.Helper()
	s := &service{place: newPlace(tb)}
	s.write(tb, "ratelimit.yaml", config)
	s.socket = filepath.Join(s.dir, "run", "admin.sock")
	if slices.Contains(flags, "--data") {
		s.socket = filepath.Join(s.dir, "data", "admin.sock")
	} else if err := os.Symlink("run", filepath.Join(s.dir, "data")); err != nil { // pages have the socket of a data directory
		tb.Fatal(err)
	}
	s.env = append(s.env, "RATELIMIT_SERVER=unix://"+s.socket)
	var entry struct {
		Message string `json:"msg"`
		HTTP    string `json:"http"`
		GRPC    string `json:"grpc"`
	}
	serving := func(line string) bool {
		return json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "serving"
	}
	program := s.startProcess(tb, serving, append([]string{"serve", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, flags...)...)
	tb.Cleanup(program.kill)
	s.http, s.grpc, s.process = entry.HTTP, entry.GRPC, program.cmd.Process.Pid
	return s
}

// run runs a command of a page, which has the usual address of the service.
func (s *service) run(tb testing.TB, command string) string {
	tb.Helper()
	return strings.ReplaceAll(s.shell(tb, strings.ReplaceAll(command, publicAddress, s.http)), s.http, publicAddress)
}
