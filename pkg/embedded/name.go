package embedded

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxName is the longest name that a bucket keeps as it is.
const maxName = 256

// storedName returns a name as a bucket keeps it: itself, or for a long one its
// beginning and its SHA-256, so that long values cannot fill the memory. Such a
// name is one byte longer than any that is kept as it is, so the two never meet.
func storedName(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName+1-2*len(sum)] + hex.EncodeToString(sum[:])
}
