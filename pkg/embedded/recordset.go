package embedded

import (
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// recordSet is the records of all namespaces.
type recordSet struct {
	size    atomic.Int64 // number of records: most installations keep none here
	mu      sync.RWMutex
	records map[recordID]limiter.Record // nil = closed
	names   map[string]bool             // of namespaces that were changed; not asked where there is a file
}

// get returns a record, an empty one for none.
func (s *recordSet) get(namespace string, ref limiter.Ref) limiter.Record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records[recordID{Namespace: namespace, Ref: ref}]
}

// refs returns which records of a namespace fn selects.
func (s *recordSet) refs(namespace string, fn func(limiter.Ref, limiter.Record) bool) []limiter.Ref {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []limiter.Ref
	for k, r := range s.records {
		if k.Namespace == namespace && fn(k.Ref, r) {
			found = append(found, k.Ref)
		}
	}
	return found
}
