package operate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// patience is how long the program may take to start.
const patience = 20 * time.Second

// publicAddress is the HTTP address that pages write.
const publicAddress = "127.0.0.1:8080"

// service is a program that answers the commands of a page.
type service struct {
	dir        string   // in which the service and the commands run
	env        []string // of both
	http, grpc string   // addresses
	process    int      // its ID
	socket     string   // of administration
}

// startService starts the program with a configuration, in a directory of its own.
func startService(tb testing.TB, config string, flags ...string) *service {
	tb.Helper()
	s := &service{dir: tb.TempDir()}
	bin, run := filepath.Join(s.dir, "bin"), filepath.Join(s.dir, "run")
	program := os.Getenv(envoytest.ProgramVariable)
	for _, err := range []error{
		os.WriteFile(filepath.Join(s.dir, "ratelimit.yaml"), []byte(config), 0o600),
		os.Mkdir(bin, 0o700), os.Mkdir(run, 0o700),
		os.Symlink(program, filepath.Join(bin, "ratelimit")),
	} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	socket := filepath.Join(run, "admin.sock")
	if slices.Contains(flags, "--data") {
		socket = filepath.Join(s.dir, "data", "admin.sock")
	}
	s.socket = socket
	s.env = append(os.Environ(), "RATELIMIT_SERVER=unix://"+socket, "PATH="+bin+":"+os.Getenv("PATH"), "RATELIMIT_RUN_DIR="+run, "HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir, "TZ=UTC")
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), program, append([]string{"serve", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, flags...)...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	s.process = cmd.Process.Pid
	ready, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			var entry struct {
				Message string `json:"msg"`
				HTTP    string `json:"http"`
				GRPC    string `json:"grpc"`
			}
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Message == "serving" {
				s.http, s.grpc = entry.HTTP, entry.GRPC
				close(ready)
			}
		}
		_ = cmd.Wait()
		ended <- all.String()
	}()
	tb.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	select {
	case <-ready:
	case log := <-ended:
		ended <- ""
		tb.Fatalf("the program ended:\n%s", log)
	case <-time.After(patience):
		tb.Fatalf("the program did not start within %v", patience)
	}
	return s
}

// local puts the address of the service into a command that has the usual one.
func (s *service) local(command string) string {
	return strings.ReplaceAll(command, publicAddress, s.http)
}

// gap is the space between two columns of a table.
var gap = regexp.MustCompile(` {2,}`)

// public is the inverse of local, and hides the directory. Its length is by chance, and with it
// the width of a column: columns are two spaces apart there.
func (s *service) public(output string) string {
	if strings.Contains(output, s.dir) {
		output = gap.ReplaceAllString(strings.ReplaceAll(output, s.dir, "/srv"), "  ")
	}
	return strings.ReplaceAll(output, s.http, publicAddress)
}
