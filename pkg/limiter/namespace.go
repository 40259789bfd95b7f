package limiter

import (
	"context"
	"fmt"
	"time"
)

// NamespaceState is the state of a namespace. In any state but NamespaceActive every request that
// would take from the namespace is denied with [ReasonDisabled]. Every change of its entities and
// limits fails with [ErrState]. Charges, refunds and settlements are applied, and reads are
// answered.
type NamespaceState uint8

// The states. Each edit leads from one to another, see [Switch].
const (
	NamespaceActive  NamespaceState = iota // also of a namespace that was never in use
	NamespaceDeleted                       // everything is kept: it can be recovered, or purged
	NamespacePurging                       // a purge has begun: it can only be purged to the end
	NamespacePurged                        // nothing is left: it can be created again
)

// String returns active, deleted, purging or purged.
func (s NamespaceState) String() string {
	names := [...]string{"active", "deleted", "purging", "purged"}
	if int(s) >= len(names) {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return names[s]
}

// Namespace is a namespace that was ever in use.
type Namespace struct {
	Name      string    // any bytes
	ID        string    // opaque and permanent, of a store that has one; "" = none
	CreatedAt time.Time // zero = not recorded
	State     NamespaceState
	Since     time.Time // of the state; zero for NamespaceActive
	Disabled  bool      // see [Switch]
}

// NamespaceFilter selects namespaces.
type NamespaceFilter struct {
	Deleted bool // those that are not active; false = the active ones
}

// Selects reports whether the filter selects a namespace.
func (f NamespaceFilter) Selects(ns Namespace) bool {
	return (ns.State != NamespaceActive) == f.Deleted
}

// Purger deletes permanently.
//
// A purge counts as a reset of every bucket of the namespace. From 5 s after the deletion no token
// is admitted until the namespace is created again, and then a bucket starts full. The name keeps
// its ID, and generations continue. So no state of a process from before the purge can return.
type Purger interface {
	// Purge deletes everything in a namespace that is deleted, is being purged, or was purged:
	// entities, limits, buckets, usage and audit events. It keeps the audit events of the namespace
	// itself, marks of settlements, and whether the namespace is disabled. progress, unless nil, is
	// called with the number of records that this call has deleted so far. After an error, also of
	// the context, Purge can be called again, and continues. It may wait before the first deletion
	// until no process can have tokens of the buckets.
	//
	// It fails with [ErrState] for a namespace that is active, and with [ErrNotFound] for one
	// that was never in use.
	Purge(ctx context.Context, now time.Time, namespace string, progress func(deleted int)) error

	// ListOrphans lists the IDs of namespaces without a name: only a purge by ID can reach their
	// records. For a store without IDs the list is empty.
	ListOrphans(ctx context.Context, p Page) (PageOf[Namespace], error)
	// PurgeOrphan deletes everything under an ID that ListOrphans lists, as Purge does, and then
	// the ID itself. It fails with [ErrNotFound] for any other ID.
	PurgeOrphan(ctx context.Context, id string, progress func(deleted int)) error
}

// refuses returns the error of a call that the state does not allow.
func (s NamespaceState) refuses() error {
	remedy := "is active: delete it first"
	switch s {
	case NamespaceActive:
	case NamespaceDeleted:
		remedy = "is deleted: recover it, or purge it"
	case NamespacePurging:
		remedy = "is being purged: finish the purge, then create it again"
	case NamespacePurged:
		remedy = "was purged: create it first"
	}
	return fmt.Errorf("%w: the namespace %s", ErrState, remedy)
}
