package envoytest

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may take to start, to stop, or to notice something,
// before the test fails. Programs need far less.
const patience = 20 * time.Second

// process is a child of the test.
type process struct {
	name   string
	cmd    *exec.Cmd
	output output
	exited chan struct{} // closed when it is gone; err is set then
	err    error
}

// startProcess starts a program that is killed, at the latest, when the test ends.
func startProcess(tb testing.TB, name, path string, args ...string) *process {
	tb.Helper()
	p := &process{name: name, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), path, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	tb.Cleanup(func() {
		p.kill()
		if strings.Contains(p.output.String(), "WARNING: DATA RACE") {
			tb.Errorf("%s has a data race", name)
		}
		if tb.Failed() {
			tb.Logf("%s wrote:\n%s", name, p.output.String())
		}
	})
	return p
}

// stop asks the program to stop and waits until it is gone.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	// It fails only for a program that has ended, as it should.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		tb.Errorf("%s did not stop within %v of SIGTERM", p.name, patience)
		p.kill()
	}
}

// kill ends the program at once, if it has not ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // see stop
	<-p.exited
}

// running reports whether the program has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// output keeps the output of a program; it is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String returns the output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
