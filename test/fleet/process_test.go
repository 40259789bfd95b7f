package fleet_test

import (
	"bytes"
	"context"
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
	events *json.Decoder
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
	p.events = json.NewDecoder(stdout)
	return p, p.cmd.Start()
}

// follow passes on what the replica says until it ends. It is killed when seen says
// so; then its end is no error.
func (p *process) follow(seen func(event) (kill bool)) error {
	killed := false
	for {
		var e event
		err := p.events.Decode(&e)
		if err != nil {
			break // the end, which Wait tells more of
		}
		if !killed && seen(e) {
			killed = true
			if err := p.cmd.Process.Kill(); err != nil {
				return err
			}
		}
	}
	err := p.cmd.Wait() // which closes stdin
	if killed {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; it wrote:\n%s", err, p.stderr.String())
	}
	return nil
}
