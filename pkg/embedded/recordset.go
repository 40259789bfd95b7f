package embedded

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// recordSet is the records of all namespaces.
type recordSet struct {
	size    atomic.Int64 // number of records: most installations keep none here
	mu      sync.RWMutex
	records map[recordID]limiter.Record // nil = closed
	owned   map[owner][]limiter.Ref     // records other than entities, by owner: an entity may be one of very many
	names   map[string]bool             // of namespaces that were changed; not asked where there is a file
}

// owner is an entity that has limits, or "" for the system and resources.
type owner struct{ namespace, entity string }

// replace replaces all records. Without mu no other goroutine may have the set yet.
func (s *recordSet) replace(records map[recordID]limiter.Record) {
	s.records, s.owned = records, make(map[owner][]limiter.Ref)
	for k := range records {
		s.own(k)
	}
	s.size.Store(int64(len(records)))
}

// put stores a record, or deletes it if it is empty. The caller holds mu.
func (s *recordSet) put(k recordID, r limiter.Record) {
	_, found := s.records[k]
	switch {
	case !r.Empty():
		s.records[k] = r
		if !found {
			s.own(k)
		}
	case found:
		delete(s.records, k)
		s.disown(k)
	}
	s.size.Store(int64(len(s.records)))
}

// own adds a record to those of its owner.
func (s *recordSet) own(k recordID) {
	if k.Ref.Kind != limiter.RefEntity {
		of := owner{k.Namespace, k.Ref.Entity}
		s.owned[of] = append(s.owned[of], k.Ref)
	}
}

// disown takes a record from those of its owner.
func (s *recordSet) disown(k recordID) {
	of := owner{k.Namespace, k.Ref.Entity}
	left := slices.DeleteFunc(s.owned[of], func(r limiter.Ref) bool { return r == k.Ref })
	if s.owned[of] = left; len(left) == 0 {
		delete(s.owned, of)
	}
}

// of returns the records of an owner. The caller holds mu.
func (s *recordSet) of(o owner) iter.Seq2[limiter.Ref, limiter.Record] {
	return func(yield func(limiter.Ref, limiter.Record) bool) {
		for _, ref := range s.owned[o] {
			if !yield(ref, s.records[recordID{Namespace: o.namespace, Ref: ref}]) {
				return
			}
		}
	}
}

// in returns the records of a namespace. The caller holds mu.
func (s *recordSet) in(namespace string) iter.Seq2[limiter.Ref, limiter.Record] {
	return func(yield func(limiter.Ref, limiter.Record) bool) {
		for k, r := range s.records {
			if k.Namespace == namespace && !yield(k.Ref, r) {
				return
			}
		}
	}
}

// get returns a record, an empty one for none.
func (s *recordSet) get(namespace string, ref limiter.Ref) limiter.Record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records[recordID{Namespace: namespace, Ref: ref}]
}

// refs returns which records of a namespace fn selects.
func (s *recordSet) refs(namespace string, fn func(limiter.Ref) bool) []limiter.Ref {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []limiter.Ref
	for ref := range s.in(namespace) {
		if fn(ref) {
			found = append(found, ref)
		}
	}
	return found
}

// limitsOf returns the limits of an entity.
func (s *recordSet) limitsOf(namespace, entity string) []limiter.Ref {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if entity == "" { // those of the system and of resources are no entity's
		return nil
	}
	return slices.Clone(s.owned[owner{namespace, entity}])
}
