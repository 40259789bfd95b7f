package valkeytest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is an address behind which one server takes the place of another, as a name or a load balancer
// has it.
type Proxy struct {
	Address string

	mu     sync.Mutex
	target string // "" = connections are refused
	mute   bool   // replies are dropped
	conns  map[net.Conn]bool
}

// NewProxy starts a proxy before an address. It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), target: target, conns: make(map[net.Conn]bool)}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		p.Point("")
		work.Wait()
	})
	return p
}

// Point breaks all connections, and leads new ones to another address; "" = to none.
func (p *Proxy) Point(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

// Lead leads new connections to another address. Those that there are stay.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Mute drops the replies of the server for a time, while commands still reach it. Then it breaks all
// connections.
func (p *Proxy) Mute(d time.Duration) {
	p.setMute(true)
	<-time.After(d)
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	p.Point(target)
	p.setMute(false)
}

func (p *Proxy) setMute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = on
}

// muted is a writer of replies that drops them while the proxy is mute.
type muted struct {
	proxy *Proxy
	to    io.Writer
}

func (m muted) Write(b []byte) (int, error) {
	m.proxy.mu.Lock()
	mute := m.proxy.mute
	m.proxy.mu.Unlock()
	if mute {
		return len(b), nil
	}
	return m.to.Write(b)
}

// enter notes a connection, and returns where it leads.
func (p *Proxy) enter(conn net.Conn) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return p.target
}

// leave ends a connection.
func (p *Proxy) leave(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	_ = conn.Close()
}

func (p *Proxy) serve(near net.Conn) {
	target := p.enter(near)
	defer p.leave(near)
	if target == "" {
		return
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	p.enter(far)
	defer p.leave(far)
	var work sync.WaitGroup
	work.Go(func() {
		_, _ = io.Copy(far, near)
		p.leave(far)
	})
	_, _ = io.Copy(muted{p, near}, far)
	p.leave(near)
	work.Wait()
}
