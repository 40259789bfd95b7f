// Package shortname bounds the memory that a name takes which a client chose.
package shortname

import (
	"crypto/sha256"
	"encoding/hex"
)

// Max is the longest name that is kept as it is, in bytes.
const Max = 256

// Of returns a name as it is kept in memory: itself, or for a long one its
// beginning and its SHA-256, so that long values cannot fill the memory. Such a
// name is one byte longer than any that is kept as it is, so the two never meet.
func Of(name string) string {
	if len(name) <= Max {
		return name
	}
	return shorten(name)
}

// shorten stands apart so that Of can be inlined: decisions call it for every name.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	return name[:Max+1-2*len(sum)] + hex.EncodeToString(sum[:])
}
