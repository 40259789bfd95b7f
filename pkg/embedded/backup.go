package embedded

import (
	"io"
)

// Backup writes a copy of the file, as it is between two transactions. Restore and datafile.Restore
// read it. Decisions and changes continue. The copy holds everything, including secrets. Backup
// returns the number of bytes written.
//
// Errors: limiter.ErrInvalid without a file, limiter.ErrClosed, limiter.ErrUnavailable.
func (s *Store) Backup(w io.Writer) (int64, error) {
	if s.disk == nil {
		return 0, errNoFile()
	}
	n, err := s.disk.file.WriteTo(w)
	return n, unavailable(err)
}
