//go:build !unix

package cli

import (
	"os"
	"time"
)

// pressed waits. Keys are not read on this system: the program ends by Ctrl-C.
func pressed(_ *os.File, wait time.Duration) bool {
	<-time.After(wait)
	return false
}
