//go:build unix

package guard

import (
	"errors"
	"syscall"
)

// Descriptors returns how many file descriptors the process may have, 0 = not known.
func Descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems, and never negative
}

// noDescriptors reports whether there was no descriptor for a connection.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
