package limiter

import "fmt"

// Bounds of a [Page].
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page selects a part of a list.
type Page struct {
	After string // PageOf.Next of the page before; "" = from the beginning
	Size  int    // most items, 1 to MaxPage; 0 = DefaultPage
}

// PageOf is a part of a list. It can be empty although more follow.
type PageOf[V any] struct {
	Items []V
	Next  string // the cursor of the next page; "" = this is the last one
}

// Checked returns the page with its default, or [ErrInvalid] for a size out of range.
func (p Page) Checked() (Page, error) {
	if p.Size == 0 {
		p.Size = DefaultPage
	}
	if p.Size < 0 || p.Size > MaxPage {
		return p, fmt.Errorf("%w: a page has 1 to %d items, not %d", ErrInvalid, MaxPage, p.Size)
	}
	return p, nil
}
