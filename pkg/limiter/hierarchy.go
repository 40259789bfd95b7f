package limiter

import "fmt"

// CheckHierarchy reports, wrapping [ErrInvalid], whether storing e would make a
// cycle or a chain of more than [MaxLevels], with the ancestors that get returns.
// It looks up only: descendants of e are not known to it, so a chain can still
// become too long below e; such a chain is denied when it is used.
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
