package operate_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// patience is how long the program may take to start.
const patience = 20 * time.Second

// process is a running program.
type process struct {
	cmd   *exec.Cmd
	ended chan string // its log, when it is gone
}

// startProcess starts the program and waits for a line of its log that begun accepts. The
// caller kills it.
func (p *place) startProcess(tb testing.TB, begun func(line string) bool, args ...string) *process {
	tb.Helper()
	s := &process{ended: make(chan string, 1)}
	s.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), os.Getenv(envoytest.ProgramVariable), args...)
	s.cmd.Dir, s.cmd.Env = p.dir, p.env
	out, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		var all strings.Builder
		for lines, waits := bufio.NewScanner(out), true; lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if waits && begun(lines.Text()) {
				waits = false
				close(ready)
			}
		}
		_ = s.cmd.Wait()
		s.ended <- all.String()
	}()
	select {
	case <-ready:
	case log := <-s.ended:
		s.ended <- log
		tb.Fatalf("the program ended:\n%s", log)
	case <-time.After(patience):
		s.kill()
		tb.Fatalf("the program did not start within %v", patience)
	}
	return s
}

// kill ends the program at once, if it has not ended.
func (s *process) kill() {
	_ = s.cmd.Process.Kill() // it fails for a program that is gone
	s.ended <- <-s.ended
}
