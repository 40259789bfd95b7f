package limiter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxShownName is the longest name that is kept as it is, in bytes.
const MaxShownName = 256

// ShortName returns a name as it is kept in memory: itself, or for a long one its
// beginning and its SHA-256, so that long values cannot fill the memory. Such a
// name is one byte longer than any that is kept as it is, so the two never meet.
func ShortName(name string) string {
	if len(name) <= MaxShownName {
		return name
	}
	return shorten(name)
}

// shorten stands apart so that ShortName can be inlined: decisions call it for every name.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	return name[:MaxShownName+1-2*len(sum)] + hex.EncodeToString(sum[:])
}

// Shortened reports whether a name has the form of one that ShortName has shortened.
func Shortened(name string) bool {
	return len(name) == MaxShownName+1 && strings.Trim(name[len(name)-2*sha256.Size:], "0123456789abcdef") == ""
}
