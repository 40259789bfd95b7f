package limiter

import "fmt"

// CheckHierarchy refuses, wrapping [ErrInvalid], an entity e that would make a cycle or a chain of
// more than [MaxLevels]. get returns the ancestors. It does not check descendants of e, so a chain
// can still become too long below e. Such a chain is denied when it is used.
func CheckHierarchy(e Entity, get func(id string) (Entity, bool)) error {
	id := e.Parent
	for level := 2; id != ""; level++ {
		if id == e.ID {
			return fmt.Errorf("%w: entity %q would be its own ancestor", ErrInvalid, e.ID)
		}
		if level > MaxLevels {
			return fmt.Errorf("%w: entity %q would have more than %d ancestors", ErrInvalid, e.ID, MaxLevels-1)
		}
		parent, ok := get(id)
		if !ok {
			return nil
		}
		id = parent.Parent
	}
	return nil
}
