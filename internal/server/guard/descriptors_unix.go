//go:build unix

package guard

import (
	"errors"
	"syscall"
)

// Descriptors returns the most file descriptors of the process, 0 = not known.
func Descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems, and never negative
}

// noDescriptors reports whether an error says that there was no descriptor for a connection.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
