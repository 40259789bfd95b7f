package limiter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Budget is an amount of tokens of a limit for each window of the calendar. It admits and
// denies nothing: usage of the window is compared with it.
type Budget struct {
	Limit  string // name
	Window UsageWindow
	Tokens int64 // 1 to MaxTokens
}

// Check refuses, with [ErrInvalid], values out of range.
func (b Budget) Check() error {
	if err := ValidateLimitName(b.Limit); err != nil {
		return err
	}
	if b.Window > UsageMonth {
		return fmt.Errorf("%w: there is no window %d", ErrInvalid, uint8(b.Window))
	}
	if b.Tokens < 1 || b.Tokens > MaxTokens {
		return fmt.Errorf("%w: the budget of limit %s for each %v is %s; it must be %s", ErrInvalid, b.Limit, b.Window, money.Amount(b.Limit, b.Tokens), money.Bounds(b.Limit, 1, MaxTokens))
	}
	return nil
}

// Budgets is an immutable set of budgets of limits that stand at one place. nil is the empty set.
type Budgets struct {
	budgets []Budget // by limit and window
}

// NewBudgets returns the set of the given budgets; nil for none. It refuses, with [ErrInvalid], a
// budget that [Budget.Check] refuses, and two of the same limit and window.
func NewBudgets(budgets ...Budget) (*Budgets, error) {
	if len(budgets) == 0 {
		return nil, nil
	}
	s := &Budgets{slices.Clone(budgets)}
	slices.SortFunc(s.budgets, func(a, b Budget) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), cmp.Compare(a.Window, b.Window))
	})
	for i, b := range s.budgets {
		if err := b.Check(); err != nil {
			return nil, err
		}
		if i > 0 && s.budgets[i-1].Limit == b.Limit && s.budgets[i-1].Window == b.Window {
			return nil, fmt.Errorf("%w: limit %s has two budgets for each %v", ErrInvalid, b.Limit, b.Window)
		}
	}
	return s, nil
}

// Len returns the number of budgets.
func (s *Budgets) Len() int {
	if s == nil {
		return 0
	}
	return len(s.budgets)
}

// At returns the i-th budget in order of limits, and of windows from the shortest.
func (s *Budgets) At(i int) Budget { return s.budgets[i] }

// Of returns the budget of a limit for a window.
func (s *Budgets) Of(limit string, w UsageWindow) (b Budget, ok bool) {
	for i := range s.Len() {
		if b := s.budgets[i]; b.Limit == limit && b.Window == w {
			return b, true
		}
	}
	return Budget{}, false
}

// Equal reports whether two sets have the same budgets.
func (s *Budgets) Equal(other *Budgets) bool {
	return s.Len() == 0 && other.Len() == 0 || s.Len() == other.Len() && slices.Equal(s.budgets, other.budgets)
}

// Hash identifies the content of the set, the same in every process. That of the empty set is 0.
func (s *Budgets) Hash() uint64 {
	if s.Len() == 0 {
		return 0
	}
	var text strings.Builder
	for _, b := range s.budgets {
		fmt.Fprintf(&text, "%s %v %d\n", b.Limit, b.Window, b.Tokens)
	}
	return fnv1a(text.String())
}

// CheckLimits refuses, with [ErrInvalid], a budget of a limit that is not among the limits, or is
// unlimited: usage of such a limit is not counted.
func (s *Budgets) CheckLimits(limits *Limits) error {
	for i := range s.Len() {
		name := s.budgets[i].Limit
		switch n := limits.Find(name); {
		case n < 0:
			return fmt.Errorf("%w: there is a budget of limit %s, which does not exist", ErrInvalid, name)
		case limits.Unlimited(n):
			return fmt.Errorf("%w: limit %s is unlimited and has a budget: its usage is not counted; give it a high rate", ErrInvalid, name)
		}
	}
	return nil
}

// detail returns the budgets of a limit for people: " budget 2_000_000/day budget 20_000_000/month"; ""
// = none.
func (s *Budgets) detail(limit string) string {
	var text strings.Builder
	for i := range s.Len() {
		if b := s.budgets[i]; b.Limit == limit {
			fmt.Fprintf(&text, " budget %s/%v", money.Amount(limit, b.Tokens), b.Window)
		}
	}
	return text.String()
}
