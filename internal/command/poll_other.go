//go:build !unix

package command

import (
	"os"
	"time"
)

// Pressed waits. Keys are not read on this system: the program ends by Ctrl-C.
func Pressed(_ *os.File, wait time.Duration) bool {
	<-time.After(wait)
	return false
}
