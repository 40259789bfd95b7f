//go:build !unix

package guard

// Descriptors returns how many file descriptors the process may have, 0 = not known.
func Descriptors() uint64 { return 0 }

// noDescriptors reports whether there was no descriptor for a connection.
func noDescriptors(error) bool { return false }
