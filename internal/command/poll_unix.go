//go:build unix

package command

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Pressed waits for a key, and reports whether there is one to read.
func Pressed(in *os.File, wait time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}} // #nosec G115 -- a descriptor is small
	n, err := unix.Poll(fds, max(1, int(wait.Milliseconds())))
	return err == nil && n > 0 // a signal is no key
}
