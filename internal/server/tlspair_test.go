package server

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

func TestRenewedCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	id := programtest.NewIdentity(t, dir, "server")
	log := new(proctest.LogBuffer)
	pair := newReloadedPair("server.grpc.tls", config.TLS{Cert: id.Cert, Key: id.Key}, slog.New(slog.NewTextHandler(log, nil)))
	serial := func() string {
		t.Helper()
		c, err := pair.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := serial()
	renewed := programtest.NewIdentity(t, dir, "renewed")
	for from, to := range map[string]string{renewed.Cert: id.Cert, renewed.Key: id.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute) // two writes can fall into one tick of the file system's clock
		if err := os.Chtimes(to, later, later); err != nil {
			t.Fatal(err)
		}
	}
	second := serial()
	if second == first {
		t.Error("the old certificate is still in use")
	}
	if err := os.WriteFile(id.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := serial(); got != second {
			t.Error("in the middle of a renewal the certificate before must serve")
		}
	}
	if got := strings.Count(log.String(), "the new certificate is not used"); got != 1 {
		t.Errorf("the unusable certificate was reported %d times, want once:\n%s", got, log)
	}
}
