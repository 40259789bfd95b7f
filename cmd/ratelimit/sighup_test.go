package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// hangUp sends SIGHUP to this process, and with it to the services in it.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func TestHangUpReadsAgain(t *testing.T) {
	id := programtest.NewIdentity(t, t.TempDir(), "server")
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("server: {grpc: {tls: {cert: %q, key: %q}}}\n", id.Cert, id.Key)+programtest.TwoPerMinute)
	r := start(t, "--config", file)
	said := func(what string, times int) {
		t.Helper()
		eventually(t, what, func() bool { return strings.Count(r.log.String(), what) == times })
	}
	hangUp(t)
	said(`msg="configuration loaded"`, 1) // nothing has changed
	said(`msg="certificate loaded"`, 1)
	if err := os.WriteFile(id.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	said(`level=ERROR msg="the new certificate is not used"`, 1)
	said("c.yaml: has no domain", 1)
	r.ask(t, "ada")
	r.end(t)
}
