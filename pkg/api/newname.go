package api

// Kinds of names that a change may bring. Each is refused where it is probably a mistake, unless the parameter
// allowNew has its kind, or is true.
const (
	NewNamespace = "namespace" // one that was never in use
	NewEntity    = "entity"    // one that is nowhere, to be disabled; one of limits that misspells a known one; a name that lists have cut
	NewParent    = "parent"    // an entity that is nowhere
	NewResource  = "resource"  // one that no rule takes from, or that misspells a known one
	NewLimit     = "limit"     // one that no level, plan or rule has
	NewPlan      = "plan"      // one that the configuration does not have
)

// NewNames are the kinds of names that a change may bring.
func NewNames() []string {
	return []string{NewNamespace, NewEntity, NewParent, NewResource, NewLimit, NewPlan}
}
