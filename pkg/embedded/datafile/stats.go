package datafile

import "time"

// Stats is about an open file.
type Stats struct {
	Bytes      int64            // of the file
	FreeBytes  int64            // inside it, for later changes
	Commits    uint64           // since Open
	LastCommit time.Duration    // its duration, including the disk
	Records    map[Table]uint64 // by table, all tables
}

// Stats returns numbers about the file, and reads no records. After a failure, or when closed, it
// returns no sizes.
func (f *File) Stats() Stats {
	f.mu.Lock()
	s := Stats{Commits: f.commits, LastCommit: f.last, Records: f.state.records()}
	f.mu.Unlock()
	h, tx, err := f.beginView()
	if err != nil {
		return s
	}
	defer rollback(tx)
	if info, err := h.file.Stat(); err == nil {
		free := h.db.Stats()
		s.Bytes = info.Size()
		s.FreeBytes = s.Bytes - tx.Size() + int64(free.FreePageN+free.PendingPageN)*pageSize
	}
	return s
}
