package server

import (
	"sync"
	"time"
)

// sharedLines is how many lines about shared events there are in a second at most.
const sharedLines = 10

// sampled bounds the lines of a log, so that clients that invent names do not hide other lines.
type sampled struct {
	mu         sync.Mutex
	second     int64 // Unix
	lines      int   // about shared events in that second
	suppressed int   // and those that were not written since the last one
}

// due reports whether there is a line about an event, and adds to its attributes how many there were none about.
func (s *sampled) due(shared bool, attrs ...any) ([]any, bool) {
	if !shared {
		return attrs, true
	}
	suppressed, ok := s.take(time.Now().Unix())
	return append(attrs, "suppressed", suppressed), ok
}

// take reports whether there may be a line about a shared event, and how many there were none about.
func (s *sampled) take(second int64) (suppressed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		s.second, s.lines = second, 0
	}
	if s.lines == sharedLines {
		s.suppressed++
		return 0, false
	}
	s.lines++
	suppressed, s.suppressed = s.suppressed, 0
	return suppressed, true
}
