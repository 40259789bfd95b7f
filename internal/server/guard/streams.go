package guard

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// stream is a stream whose headers were read.
type stream struct {
	epoch int64 // when its headers were read
	begun bool  // the server has its headers
	whole bool  // the peer sends no more on it
}

// streams are those of a connection, from their headers until their end was sent or read.
type streams struct {
	guard *Guard

	mu   sync.Mutex
	all  map[uint32]stream // nil = the connection is closed
	last uint32            // the highest number of a stream

	open      atomic.Int64        // streams that have begun and not ended
	live      atomic.Int64        // calls that the server accepted, until their handlers have ended
	receiving atomic.Int64        // calls whose handler awaits a message
	queued    [slots]atomic.Int64 // calls whose handler has not begun, by epoch
	held      atomic.Int64        // epoch since which a stream waits for its message, from 1; 0 = none
	wake      chan struct{}       // has a value when there may be room
	closed    chan struct{}
}

// read notes a frame that was read, before the server gets it.
func (s *streams) read(f frame) {
	if f.kind != kindHeaders && !f.ends() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.all[f.stream]
	switch {
	case s.all == nil:
		return
	case f.kind == kindHeaders && f.stream > s.last:
		s.last = f.stream
		known, ok = stream{epoch: s.guard.epoch.Load()}, true
	}
	if ok {
		known.whole = known.whole || f.ends()
		s.all[f.stream] = known
	}
}

// begin reports whether the server may have the headers of a stream, and notes then that it has them. half says of a
// refused stream that its message is incomplete. used says that the connection has had a call.
func (s *streams) begin(id uint32, used bool) (half, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.all[id]
	if !ok || known.begun {
		return false, true
	}
	half = !known.whole
	if !s.room(half, used) {
		s.hold(half)
		return half, false
	}
	s.held.Store(0)
	known.begun = true
	s.all[id] = known
	s.open.Add(1)
	s.guard.open.Add(1)
	return half, true
}

// end notes the end of a stream.
func (s *streams) end(id uint32) {
	s.mu.Lock()
	if known, ok := s.all[id]; ok && known.begun {
		delete(s.all, id)
		s.open.Add(-1)
		s.guard.open.Add(-1)
	}
	s.mu.Unlock()
	s.notify()
}

// close ends all streams. Their handlers may go on.
func (s *streams) close() {
	s.mu.Lock()
	s.all = nil
	s.guard.open.Add(-s.open.Swap(0))
	s.mu.Unlock()
	close(s.closed)
}

// notify wakes a waiting reader.
func (s *streams) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// count returns the number of streams, or that of handlers if it is greater.
func (s *streams) count() int64 { return max(s.open.Load(), s.live.Load()) }

// stuck returns the number of streams without a decision: they await their message or their
// handler, or the peer does not read their answers.
func (s *streams) stuck() int64 { return s.count() - deciding(&s.live, &s.receiving, &s.queued) }

// deciding returns the number of calls that have a handler, which awaits no message.
func deciding(live, receiving *atomic.Int64, queued *[slots]atomic.Int64) int64 {
	n := live.Load() - receiving.Load()
	for i := range queued {
		n -= queued[i].Load()
	}
	return n
}

// overdue reports whether a stream waits for its peer since before an epoch.
func (s *streams) overdue(before int64) bool {
	if held := s.held.Load(); held > 0 && held <= before {
		return true
	}
	var old int64
	s.mu.Lock()
	for _, known := range s.all {
		if known.begun && known.epoch < before {
			old++
		}
	}
	s.mu.Unlock()
	return old > s.live.Load()-s.receiving.Load()
}

// dropQueued ends the count of calls that were accepted in an old epoch and got no handler. One
// with an unknown encoding gets none.
func (s *streams) dropQueued(slot int64) { s.live.Add(-s.queued[slot].Swap(0)) }

// room reports whether a stream may begin. A stream with a complete message is decided as soon as
// it has begun. A half one needs the share of its connection, or much room.
func (s *streams) room(half, used bool) bool {
	g := s.guard
	switch {
	case g.Streams() >= g.cfg.MaxStreams:
		return s.count() < g.few
	case s.stuck() < g.few:
		return true
	case half:
		return used && g.stuck() < g.cfg.MaxStreams/halfShare
	default:
		return g.stuck() < g.cfg.MaxStreams/2
	}
}

// hold notes that a stream is held back.
func (s *streams) hold(half bool) {
	if half && s.held.CompareAndSwap(0, s.guard.epoch.Load()+1) {
		s.guard.held.Add(1)
	}
}

// await waits until there may be room.
func (s *streams) await() error {
	select {
	case <-s.wake:
	case <-time.After(roomCheck): // other connections may have left room
	case <-s.closed:
		return net.ErrClosed
	}
	return nil
}
