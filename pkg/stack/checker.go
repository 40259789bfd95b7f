package stack

import (
	"errors"
	"fmt"
	"regexp"
)

// ErrInvalid is wrapped by errors that only other options help against.
var ErrInvalid = errors.New("invalid")

// iamNameForm has the characters of names of roles and policies.
var iamNameForm = regexp.MustCompile(`^[\w+=,.@-]+$`)

// checker collects the mistakes of options.
type checker struct{ problems []error }

// want notes a problem unless ok.
func (c *checker) want(ok bool, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
}

// between wants 0, for the default, or a number in a range.
func (c *checker) between(option string, n, low, high int) {
	c.want(n == 0 || low <= n && n <= high, "%s is %d; it must be %d to %d", option, n, low, high)
}
