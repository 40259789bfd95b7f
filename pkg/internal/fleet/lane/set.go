package lane

import (
	"maps"
	"slices"
	"sync"
)

// set is a set of things. The zero set is empty. It is safe for concurrent use.
type set[T comparable] struct {
	mu sync.Mutex
	of map[T]struct{}
}

// put adds a thing, or removes it.
func (s *set[T]) put(thing T, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[T]struct{})
	}
	if in {
		s.of[thing] = struct{}{}
	} else {
		delete(s.of, thing)
	}
}

// all returns the things, in no order.
func (s *set[T]) all() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.of))
}
