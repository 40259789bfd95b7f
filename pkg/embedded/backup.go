package embedded

import (
	"errors"
	"fmt"
	"io"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
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

func errNoFile() error {
	return fmt.Errorf("%w: this store keeps nothing in a file", limiter.ErrInvalid)
}

// unavailable is what an error of the file means to callers.
func unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, datafile.ErrClosed):
		return fmt.Errorf("%w: %w", limiter.ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
}
