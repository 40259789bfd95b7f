package embedded

import (
	"io"
)

// Backup writes a copy of the file, as it is between two transactions, that Restore
// and datafile.Restore take. Decisions and changes go on meanwhile. It holds
// everything, secrets too. It returns how many bytes it wrote.
//
// Errors: limiter.ErrInvalid without a file, limiter.ErrClosed, limiter.ErrUnavailable.
func (s *Store) Backup(w io.Writer) (int64, error) {
	if s.disk == nil {
		return 0, errNoFile()
	}
	n, err := s.disk.file.WriteTo(w)
	return n, unavailable(err)
}
