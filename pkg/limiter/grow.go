package limiter

// grow makes a slice one longer and returns the new element, with its old contents: reusing an
// element in place saves writing it twice.
func grow[T any](s *[]T) *T {
	if n := len(*s); n < cap(*s) {
		*s = (*s)[:n+1]
	} else {
		var zero T
		*s = append(*s, zero)
	}
	return &(*s)[len(*s)-1]
}
