package limiter

import (
	"context"
	"time"
)

// Catalog is the part of a [Store] that keeps entities and limits. In a namespace that is not
// active its changes fail with [ErrState].
type Catalog interface {
	// Read reads the records that refs name into records, which has the same
	// length: one batch, consistent with itself. What does not exist is the zero
	// Record; a record that could not be read is an error, never a zero Record.
	// The generation is of no later time than the records, so that limits that
	// were replaced are never taken for new ones. Records are shared and must not
	// be changed.
	Read(ctx context.Context, namespace string, refs []Ref, records []Record) (generation uint64, err error)

	// PutEntity creates or replaces an entity. e.Version must be what was read, 0
	// for one that does not exist, else ErrConflict. It refuses with ErrInvalid an
	// empty ID, and what CheckHierarchy refuses of the entity's own chain upwards. It returns the entity
	// as stored: with its new Version, and CreatedAt (now when it was created).
	PutEntity(ctx context.Context, now time.Time, namespace string, e Entity) (Entity, error)
	// DeleteEntity removes an entity and its limits; its buckets stay. One that
	// does not exist is not an error. Children keep their Parent, which then is an
	// entity that was never created.
	DeleteEntity(ctx context.Context, namespace, id string) error

	// PutLimits sets what ref holds: Record.Limits, and for SystemRef also
	// Record.OnUnavailable. An empty record deletes it. ref must not be an EntityRef. No
	// method but Edit changes Record.Disabled, and none but Edit and Purge Record.State.
	PutLimits(ctx context.Context, namespace string, ref Ref, r Record) error

	// RaiseGeneration raises the generation of every namespace that this store has
	// read, and of each other one before its first Read: the configuration file
	// changed, and limits resolved from now on are newer than all before. The generation
	// of another process stays below it until that one reads its file again, so that
	// limits of an older file replace none of a newer one. The changes of
	// PutEntity, DeleteEntity and PutLimits raise the generation of all processes.
	RaiseGeneration(ctx context.Context) error

	// Subscribe has fn called after every change of any process, within 5 seconds.
	// It must be called before the first Read, at most once, and fn must not
	// block. Not needed where Capabilities().Local.
	Subscribe(fn func(Change))
}

// Change says that records of a namespace changed.
type Change struct {
	Namespace  string // "" = all
	Generation uint64 // of the change: what was read at a smaller one may be old
	Refs       []Ref  // what changed; nil = anything
}
