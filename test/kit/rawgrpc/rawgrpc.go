// Package rawgrpc calls the Rate Limit Service frame by frame, so that tests can send frames that no
// client in order sends.
package rawgrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// method is that of the Rate Limit Service.
const method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// writeTimeout is how long a write may take, where the server reads no more.
const writeTimeout = time.Minute

// Conn is a connection that speaks HTTP/2 frame by frame. One goroutine at a time may call.
type Conn struct {
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	coder  *hpack.Encoder
	stream uint32

	writing sync.Mutex // held while a frame is written
	goaway  atomic.Bool
	pongs   atomic.Int64
	answers atomic.Int64  // streams that ended
	stalled atomic.Bool   // the reader ends
	closed  chan struct{} // when the server has closed it, or nothing is read
}

// New begins HTTP/2 on a connection, which the caller closes: that ends the reader too.
func New(conn net.Conn) (*Conn, error) {
	r := &Conn{conn: conn, framer: http2.NewFramer(conn, conn), stream: 1, closed: make(chan struct{})}
	r.coder = hpack.NewEncoder(&r.block)
	go r.read()
	_, err := conn.Write([]byte(http2.ClientPreface))
	if err == nil {
		err = r.framer.WriteSettings()
	}
	return r, err
}

// read reads until the connection ends. Settings are not acknowledged.
func (r *Conn) read() {
	defer close(r.closed)
	for {
		if r.stalled.Load() {
			return
		}
		f, err := r.framer.ReadFrame()
		if _, of := errors.AsType[http2.StreamError](err); of {
			continue
		}
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			r.goaway.Store(true)
		case *http2.PingFrame:
			if f.IsAck() {
				r.pongs.Add(1)
				continue
			}
			r.writing.Lock()
			_ = r.framer.WritePing(true, f.Data) // where it fails, so does the next read
			r.writing.Unlock()
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				r.answers.Add(1)
			}
		}
	}
}

// Open begins a call, with further headers, and sends no message. It reports whether the connection
// still takes it.
func (r *Conn) Open(more ...[2]string) (stream uint32, ok bool) {
	r.block.Reset()
	for _, h := range append([][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", method},
		{":authority", "ratelimit"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	}, more...) {
		_ = r.coder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // to memory
	}
	stream = r.stream
	r.stream += 2
	_ = r.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	r.writing.Lock()
	defer r.writing.Unlock()
	const frame = 16 << 10 // the most that a server must take
	block := r.block.Bytes()
	first := block[:min(len(block), frame)]
	err := r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(first) == len(block)})
	for block = block[len(first):]; err == nil && len(block) > 0; {
		next := block[:min(len(block), frame)]
		block = block[len(next):]
		err = r.framer.WriteContinuation(stream, len(block) == 0, next)
	}
	return stream, err == nil
}

// Begin begins the headers of a call, and does not end them.
func (r *Conn) Begin() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream})
}

// Reset ends a stream.
func (r *Conn) Reset(stream uint32) {
	r.writing.Lock()
	defer r.writing.Unlock()
	_ = r.framer.WriteRSTStream(stream, http2.ErrCodeCancel) // the next Open returns the error
}

// Window sets how much of each answer the server may send.
func (r *Conn) Window(size uint32) error {
	return r.Settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: size})
}

// Settings sends settings, which the server has to acknowledge.
func (r *Conn) Settings(all ...http2.Setting) error {
	_ = r.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.framer.WriteSettings(all...)
}

// Stall has the connection read no more, after the next frame.
func (r *Conn) Stall() { r.stalled.Store(true) }

// Send sends a part of a message of that many bytes, within the window that every stream
// has.
func (r *Conn) Send(stream uint32, size uint32, part []byte, end bool) bool {
	rest := append(binary.BigEndian.AppendUint32([]byte{0}, size), part...)
	_ = r.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	r.writing.Lock()
	defer r.writing.Unlock()
	const frame = 16 << 10 // the most that a server must take
	for ; ; rest = rest[frame:] {
		if len(rest) <= frame {
			return r.framer.WriteData(stream, end, rest) == nil
		}
		if r.framer.WriteData(stream, false, rest[:frame]) != nil {
			return false
		}
	}
}

// Call makes a whole call.
func (r *Conn) Call(message []byte) bool {
	stream, ok := r.Open()
	return ok && r.Send(stream, uint32(len(message)), message, true) // #nosec G115 -- a test's
}

// Ping sends a ping.
func (r *Conn) Ping() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.framer.WritePing(false, [8]byte{})
}

// Pongs returns how many pings were answered.
func (r *Conn) Pongs() int64 { return r.pongs.Load() }

// Answers returns how many calls have ended.
func (r *Conn) Answers() int64 { return r.answers.Load() }

// ToldToGo reports whether the server wants no more calls here.
func (r *Conn) ToldToGo() bool { return r.goaway.Load() }

// Closed returns a channel that is closed when the server has closed the connection.
func (r *Conn) Closed() <-chan struct{} { return r.closed }

// Gone reports whether the server has closed the connection.
func (r *Conn) Gone() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}
