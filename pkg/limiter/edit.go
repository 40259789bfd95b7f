package limiter

import (
	"context"
	"fmt"
	"time"
)

// Editor changes entities and limits.
type Editor interface {
	// Edit replaces the record of e.Ref by the one that e.Change makes of it. No other change of
	// the namespace comes in between. A change without effect is not applied: it raises no
	// generation and leaves no audit event. An entity keeps CreatedAt, and gets a Version that no
	// record of this ID had before; deleting it deletes its limits. Edit refuses the same records
	// with [ErrInvalid] as PutEntity and PutLimits.
	//
	// An edit that deletes or recovers a namespace which was never in use fails with [ErrNotFound].
	// One that creates it is a change, and brings it into use.
	Edit(ctx context.Context, now time.Time, namespace string, e Edit) (Edited, error)
}

// Edit is one change of a record.
type Edit struct {
	Ref Ref
	// Change returns the record to store, an empty one to delete. It must neither block nor
	// alter before. A store may call it several times, and returns its error unchanged. It
	// does not change Record.Disabled and Record.State.
	Change func(before Record) (after Record, err error)
	Switch Switch // other than Leave: it is applied, and Change is not called
	DryRun bool   // every check is made, and nothing is applied
}

// Edited is the outcome of an [Edit]. Records are shared and must not be changed.
type Edited struct {
	Before, After Record
	Changed       bool // or would be, in a dry run
	Limits        int  // number of limit records that were deleted with an entity
}

// ReplaceEntity returns the Change of [Catalog.PutEntity]: it stores e where e.Version is that of
// the stored entity, or 0 where there is none, and fails with [ErrConflict] otherwise.
func ReplaceEntity(e Entity) func(before Record) (after Record, err error) {
	return func(before Record) (Record, error) {
		version := uint64(0)
		if before.Entity != nil {
			version = before.Entity.Version
		}
		if e.Version != version {
			return Record{}, fmt.Errorf("%w: entity %.100q has version %d, not %d", ErrConflict, e.ID, version, e.Version)
		}
		return Record{Entity: &e}, nil
	}
}

// ReplaceLimits returns the Change of [Catalog.PutLimits], which stores r in any case. It refuses
// with [ErrInvalid] an [EntityRef].
func ReplaceLimits(ref Ref, r Record) (change func(before Record) (after Record, err error), err error) {
	if ref.Kind == RefEntity {
		return nil, fmt.Errorf("%w: an entity is stored with PutEntity", ErrInvalid)
	}
	return func(Record) (Record, error) { return r, nil }, nil
}

// Apply returns the record that the edit makes at now of the one before, in a namespace in a state,
// for the caller of a context. Stores call it. It returns the error of Change unchanged. It returns [ErrState] for an edit that
// the state does not allow, and [ErrInvalid] for an invalid record or switch.
func (e Edit) Apply(ctx context.Context, now time.Time, in NamespaceState, before Record) (after Record, err error) {
	switch {
	case in != NamespaceActive && e.Switch <= Enable:
		err = in.refuses()
	case e.Switch == Leave:
		after, err = e.Change(before)
		after.Disabled, after.Disabling, after.State, after.Since = before.Disabled, before.Disabling, before.State, before.Since
	case e.Switch > EndPurge || e.Ref.Kind == RefEntityLimits || e.Switch.OfNamespace() && e.Ref.Kind != RefSystemLimits:
		err = fmt.Errorf("%w: there is no switch %d of a record of kind %d", ErrInvalid, e.Switch, e.Ref.Kind)
	case e.Switch.OfNamespace():
		var to NamespaceState
		to, err = e.Switch.transition(before.State)
		after = before.inState(to, now)
	default:
		after = before
		after.Disabled = e.Switch == Disable
		switch {
		case !after.Disabled:
			after.Disabling = nil
		case !before.Disabled: // else the first one counts
			after.Disabling = disablingBy(ctx, now)
		}
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
