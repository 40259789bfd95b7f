package limiter

import "strings"

// Switch is the part of an [Edit] that disables or enables a subject, or changes the state of the
// namespace. Leave does neither.
//
// While an entity, a resource or a namespace is disabled, requests that would take from it are
// denied with [ReasonDisabled]. These are requests of the entity, of its cascading descendants, for
// the resource, or in the namespace. Charges, refunds and settlements are applied. The switch
// outlives changes and the deletion of the subject's record, and applies also to a subject that was
// never stored.
type Switch uint8

// The switches.
const (
	Leave Switch = iota
	Disable
	Enable

	// The switches of the state of the namespace, whose subject is [SystemLimitsRef].

	CreateNamespace  // brings a namespace into use that is unused, or was purged
	DeleteNamespace  // of an active one: all its data is kept
	RecoverNamespace // of a deleted one: with all its data, and its buckets refilled to now
	BeginPurge       // for the Purge of stores
	EndPurge         // the same
)

// The actions of audit events of switches.
const (
	ActionDisableEntity    = "entity.disable"
	ActionEnableEntity     = "entity.enable"
	ActionDisableResource  = "resource.disable"
	ActionEnableResource   = "resource.enable"
	ActionDisableNamespace = "namespace.disable"
	ActionEnableNamespace  = "namespace.enable"

	ActionCreateNamespace  = "namespace.create"
	ActionDeleteNamespace  = "namespace.delete"
	ActionRecoverNamespace = "namespace.recover"
	ActionPurgeNamespace   = "namespace.purge" // at the beginning
	ActionPurgedNamespace  = "namespace.purged"
)

// AboutNamespace reports whether an action is about a namespace itself. Such events outlive a
// purge.
func AboutNamespace(action string) bool { return strings.HasPrefix(action, "namespace.") }

// OfNamespace reports whether the switch changes the state of a namespace.
func (s Switch) OfNamespace() bool { return s >= CreateNamespace && s <= EndPurge }

// Action returns the action of an audit event of the switch, which must not be Leave.
func (s Switch) Action(ref Ref) string {
	if s.OfNamespace() {
		return [...]string{ActionCreateNamespace, ActionDeleteNamespace, ActionRecoverNamespace, ActionPurgeNamespace, ActionPurgedNamespace}[s-CreateNamespace]
	}
	actions := [...]string{ActionDisableEntity, ActionEnableEntity}
	switch ref.Kind {
	case RefResourceLimits:
		actions = [...]string{ActionDisableResource, ActionEnableResource}
	case RefSystemLimits:
		actions = [...]string{ActionDisableNamespace, ActionEnableNamespace}
	case RefEntity, RefEntityLimits:
	}
	return actions[s-Disable]
}

// transition returns the state after a switch of a namespace from a state, or [ErrState].
func (s Switch) transition(from NamespaceState) (NamespaceState, error) {
	for _, t := range [...]struct {
		from NamespaceState
		by   Switch
		to   NamespaceState
	}{
		{NamespaceActive, CreateNamespace, NamespaceActive},
		{NamespaceActive, RecoverNamespace, NamespaceActive},
		{NamespaceActive, DeleteNamespace, NamespaceDeleted},
		{NamespaceDeleted, DeleteNamespace, NamespaceDeleted},
		{NamespaceDeleted, RecoverNamespace, NamespaceActive},
		{NamespaceDeleted, BeginPurge, NamespacePurging},
		{NamespacePurging, BeginPurge, NamespacePurging},
		{NamespacePurging, EndPurge, NamespacePurged},
		{NamespacePurged, BeginPurge, NamespacePurging},
		{NamespacePurged, EndPurge, NamespacePurged},
		{NamespacePurged, CreateNamespace, NamespaceActive},
	} {
		if t.from == from && t.by == s {
			return t.to, nil
		}
	}
	return from, from.refuses()
}
