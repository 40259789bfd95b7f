package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// Stats is about the file of a store.
type Stats struct {
	datafile.Stats

	CommitErrors int64 // transactions that failed since Open
}

// Stats returns numbers about the file; zero without one. It reads no records.
func (s *Store) Stats() Stats {
	if s.disk == nil {
		return Stats{}
	}
	return Stats{Stats: s.disk.file.Stats(), CommitErrors: s.disk.commitErrors.Load()}
}
