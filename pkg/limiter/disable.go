package limiter

import (
	"fmt"
	"strings"
	"time"
)

// Switch says whether an [Edit] disables a subject, enables it, or leaves that as it is, or that
// it changes the state of the namespace.
//
// While an entity, a resource or a namespace is disabled, every request that would take from
// it is denied with [ReasonDisabled]: a request of the entity, of its cascading descendants,
// for the resource, or in the namespace. Charges, refunds and settlements are booked. The
// switch outlives changes and the deletion of the subject's record, and holds for a subject
// that was never stored.
type Switch uint8

// The switches.
const (
	Leave Switch = iota
	Disable
	Enable

	// The switches of the state of the namespace, whose subject is [SystemLimitsRef].

	CreateNamespace  // brings a namespace into use that is not, or was purged
	DeleteNamespace  // of an active one: nothing of it is lost
	RecoverNamespace // of a deleted one: it has all it had, and its buckets as they are by now
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

// Apply returns the record that the edit makes at now of the one before, in a namespace in a
// state. Stores call it. It returns the error of Change unchanged. It returns [ErrState] for an edit
// that the state does not allow, and [ErrInvalid] for a record or a switch that cannot be.
func (e Edit) Apply(now time.Time, in NamespaceState, before Record) (after Record, err error) {
	switch {
	case in != NamespaceActive && e.Switch <= Enable:
		err = in.refuses()
	case e.Switch == Leave:
		after, err = e.Change(before)
		after.Disabled, after.State, after.Since = before.Disabled, before.State, before.Since
	case e.Switch > EndPurge || e.Ref.Kind == RefEntityLimits || e.Switch.OfNamespace() && e.Ref.Kind != RefSystemLimits:
		err = fmt.Errorf("%w: there is no switch %d of a record of kind %d", ErrInvalid, e.Switch, e.Ref.Kind)
	case e.Switch.OfNamespace():
		var to NamespaceState
		to, err = e.Switch.transition(before.State)
		after = before.inState(to, now)
	default:
		after = before
		after.Disabled = e.Switch == Disable
	}
	if err == nil {
		err = after.Check(e.Ref)
	}
	return after, err
}

// Deletes reports whether an edit that leads to after deletes an entity, and its limits too.
func (e Edit) Deletes(after Record) bool {
	return e.Ref.Kind == RefEntity && e.Switch == Leave && after.Entity == nil
}

// Stored reports whether the record has more than the switch.
func (r Record) Stored() bool {
	return r.Entity != nil || r.Limits.Len() > 0 || r.OnUnavailable != Unset
}

// Disabled names the subject that denied a request with [ReasonDisabled].
type Disabled struct {
	// Subject is an entity; a resource, as [ResourceLimitsRef]; or the namespace, as
	// [SystemLimitsRef].
	Subject Ref
	Take    int // index of the take that is denied
	Level   int // of an entity: 0 for the take's own, 1 for its parent, ...
	// State is that of the namespace where it is not active: the namespace then denies whether
	// it is disabled or not.
	State NamespaceState
}

// Kind returns the kind of the subject: entity, resource or namespace.
func (d *Disabled) Kind() string {
	switch d.Subject.Kind {
	case RefResourceLimits:
		return "resource"
	case RefSystemLimits:
		return "namespace"
	case RefEntity, RefEntityLimits:
	}
	return "entity"
}

// noteDisabled denies the request for a level with a disabled subject. The namespace counts
// before the resource, and the resource before the entity.
func (d *Decision) noteDisabled(t *Take, lv *level, records []Record) {
	var subject Ref
	switch {
	case t.Mode != Consume || d.Reason == ReasonDisabled:
		return
	case records[4].Disabled || records[4].State != NamespaceActive:
		subject = SystemLimitsRef()
	case records[3].Disabled:
		subject = ResourceLimitsRef(t.Resource)
	case records[0].Disabled:
		subject = EntityRef(lv.entity)
	default:
		return
	}
	d.Reason, d.Disabled = ReasonDisabled, Disabled{Subject: subject, Take: lv.take, Level: lv.depth, State: records[4].State}
}
