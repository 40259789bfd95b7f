package fleet_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// process is a replica in a process of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events *gob.Decoder
	stderr bytes.Buffer
}

// startReplica starts a process; it is killed when ctx ends, and ends by itself when
// this process is gone.
func startReplica(ctx context.Context, j job) (*process, error) {
	description, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(description))
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.events = gob.NewDecoder(stdout)
	return p, p.cmd.Start()
}

// direct signals the replica when the load is to be low, and when it is to end. It
// ends then, or with ctx.
func (p *process) direct(ctx context.Context, calm, stop <-chan struct{}) {
	for {
		select {
		case <-calm:
			calm = nil
			_, _ = p.stdin.Write([]byte{'\n'}) // fails when the replica has gone
		case <-stop:
			_ = p.stdin.Close()
			return
		case <-ctx.Done():
			return
		}
	}
}

// follow reads the events of the replica until it ends, and returns the last one. The
// replica is killed when kill returns true; then its end is no error.
func (p *process) follow(kill func(event) bool) (last event, killed bool, err error) {
	for {
		var e event
		if err := p.events.Decode(&e); err != nil {
			break // the end; Wait returns its cause
		}
		last = e
		if !killed && kill(e) {
			killed = true
			if err := p.cmd.Process.Kill(); err != nil {
				return last, false, err
			}
		}
	}
	if err := p.cmd.Wait(); err != nil && !killed {
		return last, false, fmt.Errorf("%w; it wrote:\n%s", err, p.stderr.String())
	}
	return last, killed, nil
}
