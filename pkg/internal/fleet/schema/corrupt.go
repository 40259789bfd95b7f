package schema

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// CorruptError says that an item of the table is not as this program writes it. It
// wraps limiter.ErrInvalid: such an item never counts as absent.
type CorruptError struct {
	Table     string
	Key       string // of the item
	Attribute string
	Problem   string // its value or type, and the right one
}

// Error names the item and the attribute, and the form that would be right.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("item %s of table %s is corrupt: attribute %s %s", e.Key, e.Table, e.Attribute, e.Problem)
}

// Unwrap returns limiter.ErrInvalid.
func (e *CorruptError) Unwrap() error { return limiter.ErrInvalid }
