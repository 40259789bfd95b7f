package limiter

import (
	"context"
	"time"
)

// Catalog is the part of a [Store] that keeps entities and limits. In a namespace that is not
// active its changes fail with [ErrState].
type Catalog interface {
	// Read reads the records of refs into records, which has the same length: one batch, consistent
	// with itself. A record that does not exist is the zero Record. A record that could not be read
	// is an error, never a zero Record. The generation is of no later time than the records, so
	// that replaced limits are never treated as new ones. Records are shared and must not be
	// changed.
	Read(ctx context.Context, namespace string, refs []Ref, records []Record) (generation uint64, err error)

	// PutEntity creates or replaces an entity. e.Version must be that of the entity as read, 0 for
	// a new one, else ErrConflict. It refuses with ErrInvalid an empty ID, and an entity whose
	// chain upwards CheckHierarchy refuses. It returns the stored entity: with its new Version, and
	// CreatedAt (now when it was created).
	PutEntity(ctx context.Context, now time.Time, namespace string, e Entity) (Entity, error)
	// DeleteEntity deletes an entity and its limits; its buckets stay. It is no error if the entity
	// does not exist. Children keep their Parent, which then is an entity that was never created.
	DeleteEntity(ctx context.Context, namespace, id string) error

	// PutLimits sets the record of ref: Record.Limits with Record.Alone, and for SystemRef also Record.OnUnavailable.
	// An empty record deletes it. ref must not be an EntityRef. Only Edit changes Record.Disabled,
	// and only Edit and Purge change Record.State.
	PutLimits(ctx context.Context, namespace string, ref Ref, r Record) error

	// RaiseGeneration raises the generation of every namespace that this store has read, and of
	// each other one before its first Read. It marks a change of the configuration file: limits
	// resolved from now on are newer than all before. The generation of another process stays below
	// it until that process reads its file again. So limits of an older file replace none of a
	// newer one. The changes of PutEntity, DeleteEntity and PutLimits raise the generation of all
	// processes.
	RaiseGeneration(ctx context.Context) error

	// Subscribe sets fn to be called after every change of any process, within 5 seconds. It must
	// be called before the first Read, at most once, and fn must not block. It is not needed where
	// Capabilities().Local.
	Subscribe(fn func(Change))
}

// Change is a change of records of a namespace.
type Change struct {
	Namespace  string // "" = all
	Generation uint64 // of the change: records read at a smaller one may be old
	Refs       []Ref  // the changed records; nil = any
}
