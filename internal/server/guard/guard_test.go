package guard

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections a test makes.
type pipes struct {
	net.Listener

	next chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.next
	if !ok {
		return nil, syscall.EMFILE
	}
	return c, nil
}

// world is a guard and its listener.
type world struct {
	*Guard

	t     *testing.T
	pipes *pipes
	inner net.Listener
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	w := &world{Guard: New(cfg), t: t, pipes: &pipes{next: make(chan net.Conn, 1)}}
	w.inner = w.Listener(w.pipes)
	return w
}

// accept makes a connection.
func (w *world) accept() *conn {
	w.t.Helper()
	server, client := net.Pipe()
	w.t.Cleanup(func() { _ = client.Close() })
	w.pipes.next <- server
	c, err := w.inner.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	return c.(*conn) // made by the listener
}

// expect lets a handler await a message.
func (c *conn) expect() {
	c.streams.receiving.Add(1)
	c.guard.receiving.Add(1)
}

// use lets a whole message come.
func (c *conn) use(size int64) {
	c.expect()
	c.add(size)
	c.finish(size, true)
}

// age makes the connections old enough to be replaced.
func (w *world) age() {
	for _, c := range w.all() {
		c.since = c.since.Add(-grace)
	}
}

func TestTheLeastUsedGoes(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, Config{Name: "grpc", MaxConnections: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	used := w.accept()
	idle := w.accept()
	idler := w.accept()
	used.use(100)
	w.age()
	w.accept()
	if !idle.ended.Load() || used.ended.Load() || idler.ended.Load() {
		t.Error("not the oldest of those without a call went")
	}
	w.nextEpoch() // used had its last message in the epoch before
	w.accept()
	if !idler.ended.Load() || used.ended.Load() {
		t.Error("one that had a call went before one that had none")
	}
	if got := w.Connections(); got != 3 {
		t.Errorf("%d connections, want 3", got)
	}
	if w.Closed(Evicted) != 2 || strings.Count(log.String(), "closing connections") != 1 {
		t.Errorf("%d evicted, logged %s", w.Closed(Evicted), log.String())
	}
}

// When all connections are in use a new one has to wait.
func TestANewConnectionIsRefused(t *testing.T) {
	w := newWorld(t, Config{MaxConnections: 1})
	used := w.accept()
	used.use(100)
	refused, client := net.Pipe()
	w.pipes.next <- refused
	close(w.pipes.next)
	if _, err := w.inner.Accept(); !errors.Is(err, syscall.EMFILE) { // Accept went on to the next
		t.Errorf("got %v, want EMFILE", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the new connection: %v, want EOF", err)
	}
	if used.ended.Load() || w.Closed(Refused) != 1 {
		t.Errorf("%d refused, and the one in use gone: %t", w.Closed(Refused), used.ended.Load())
	}
}

func TestNoDescriptorsMakeRoom(t *testing.T) {
	w := newWorld(t, Config{})
	idle := w.accept()
	close(w.pipes.next)
	if _, err := w.inner.Accept(); !errors.Is(err, syscall.EMFILE) || !idle.ended.Load() {
		t.Errorf("got %v, and the idle connection gone: %t", err, idle.ended.Load())
	}
}

// Whole messages never count as pending, in any number.
func TestWholeMessagesAreNotPending(t *testing.T) {
	w := newWorld(t, Config{MaxPending: 1 << 20})
	c := w.accept()
	c.expect() // so that there is always a call
	for range 100_000 {
		c.use(messageHead + 1000)
	}
	if c.ended.Load() || w.pending.Load() > fewPending {
		t.Errorf("closed %t, %d bytes are pending", c.ended.Load(), w.pending.Load())
	}
	c.finish(0, false)
	if got := w.pending.Load(); got != 0 {
		t.Errorf("%d bytes are pending at rest, want none", got)
	}
}

func TestTheLargestGoes(t *testing.T) {
	w := newWorld(t, Config{MaxPending: 4 << 20})
	small := w.accept()
	small.add(100_000)
	all := make([]*conn, 4)
	for i := range all {
		all[i] = w.accept()
		all[i].add(int64(i+8) << 17) // 1 MiB and more
	}
	if small.ended.Load() || all[0].ended.Load() || w.Closed(Large) == 0 {
		t.Errorf("small gone %t, %d closed", small.ended.Load(), w.Closed(Large))
	}
	if got := w.pending.Load(); got > 4<<20 {
		t.Errorf("%d bytes are pending", got)
	}
	one := w.accept()
	one.add(2<<20 + 1)
	if !one.ended.Load() {
		t.Error("one connection may have more than half")
	}
}

// A new connection has its time for a call, among any number of others.
func TestANewConnectionHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 8})
		idle := make([]*conn, 8)
		for i := range idle {
			idle[i] = w.accept()
		}
		for range 100 {
			began := time.Now()
			c := w.accept()
			if c.ended.Load() || w.Connections() != 8 {
				t.Fatalf("%d connections, and the new one gone: %t", w.Connections(), c.ended.Load())
			}
			if waited := time.Since(began); waited > grace {
				t.Fatalf("it waited %v, want %v at most", waited, grace)
			}
			time.Sleep(grace - time.Millisecond)
			if c.ended.Load() {
				t.Fatal("it was closed before it had its time")
			}
		}
	})
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		descriptors uint64
		wanted      int
		want        Shares
	}{
		{64, 10_000, Shares{GRPC: 32, HTTP: 4, Admin: 4}},
		{1024, 10_000, Shares{GRPC: 768, HTTP: 64, Admin: 64}},
		{1024, 100, Shares{GRPC: 100, HTTP: 64, Admin: 64}},
		{1 << 20, 10_000, Shares{GRPC: 10_000, HTTP: MaxHTTP, Admin: MaxHTTP}},
		{0, 10_000, Shares{GRPC: 10_000, HTTP: MaxHTTP, Admin: MaxHTTP}},
		{1, 10_000, Shares{GRPC: 1, HTTP: 4, Admin: 4}},
	} {
		if got := Share(tt.descriptors, tt.wanted); got != tt.want {
			t.Errorf("of %d descriptors: got %+v, want %+v", tt.descriptors, got, tt.want)
		}
	}
	if Descriptors() == 0 {
		t.Error("the process has no descriptors")
	}
}
