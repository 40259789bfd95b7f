package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The bounds for slow clients in docs/configuration.md hold.
func TestPaceIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\s+`).ReplaceAllString(string(page), " ")
	if want := "reads less than 64 KiB a second, or nothing for 30 seconds, is left"; !strings.Contains(text, want) || slowest != 64<<10 || stalled != 30*time.Second {
		t.Errorf("%d bytes a second and %v; the page must say %q", slowest, stalled, want)
	}
}

// endless is an archive that writes and reads for as long as its client does.
type endless struct{ ended chan error }

func (e endless) Backup(w io.Writer) (n int64, err error) {
	for part := make([]byte, 64<<10); err == nil; {
		var k int
		k, err = w.Write(part)
		n += int64(k)
	}
	e.ended <- err
	return n, err
}

func (e endless) Restore(_ context.Context, from io.Reader) error {
	_, err := io.Copy(io.Discard, from)
	e.ended <- err
	return err
}

// pipes is a listener of connections in memory, which have the address of a Unix socket.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

type localPipe struct{ net.Conn }

func (localPipe) LocalAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// A client that stalls, or is very slow, occupies a backup and a restore for a bounded time.
func TestClientsThatStall(t *testing.T) {
	for _, test := range []struct {
		name, request string
		every         time.Duration // that the client reads or writes a little; 0 = never
		least, most   time.Duration
	}{
		{"a backup that is not read", "GET /v1/backup HTTP/1.1\r\nHost: x\r\n\r\n", 0, stalled, stalled},
		{"a backup that trickles", "GET /v1/backup HTTP/1.1\r\nHost: x\r\n\r\n", 20 * time.Second, stalled, 2 * stalled},
		{"a restore that is not sent", "POST /v1/restore HTTP/1.1\r\nHost: x\r\nContent-Type: " + BackupType + "\r\nContent-Length: 1000000000\r\n\r\n", 0, stalled, stalled},
		{"a restore that trickles", "POST /v1/restore HTTP/1.1\r\nHost: x\r\nContent-Type: " + BackupType + "\r\nContent-Length: 1000000000\r\n\r\n", 20 * time.Second, stalled, 2 * stalled},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := endless{make(chan error, 1)}
				server := &http.Server{Handler: NewControl(ControlConfig{Access: new(Access), Explainer: new(Explainer), Archive: e}), ReadHeaderTimeout: ControlTimeout}
				listener := make(pipes, 1)
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener) }()
				client, inside := net.Pipe()
				listener <- localPipe{inside}
				begin := time.Now()
				if _, err := io.WriteString(client, test.request); err != nil {
					t.Fatal(err)
				}
				stop := make(chan struct{})
				go trickle(client, strings.HasPrefix(test.request, "POST"), test.every, stop)
				err := <-e.ended
				if took := time.Since(begin); !errors.Is(err, os.ErrDeadlineExceeded) || took < test.least || took > test.most {
					t.Errorf("it ended after %v with %v, want a deadline after %v to %v", took, err, test.least, test.most)
				}
				close(stop)
				_ = client.Close()
				_ = server.Close()
				if err := <-served; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
				time.Sleep(time.Second) // the server lets a refused client read to the end
			})
		})
	}
}

// trickle writes or reads a little at intervals, until stop is closed.
func trickle(c net.Conn, write bool, every time.Duration, stop chan struct{}) {
	if every == 0 {
		return
	}
	for part := make([]byte, 1024); ; {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		var err error
		if write {
			_, err = c.Write(part)
		} else {
			_, err = c.Read(part)
		}
		if err != nil {
			return
		}
	}
}
