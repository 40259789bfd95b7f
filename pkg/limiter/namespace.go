package limiter

import (
	"context"
	"fmt"
	"time"
)

// NamespaceState says whether a namespace is in use. In any state but NamespaceActive every
// request that would take from the namespace is denied with [ReasonDisabled], and every change
// of its entities and limits fails with [ErrState]. Charges, refunds and settlements are booked,
// and reads are answered.
type NamespaceState uint8

// The states. Each edit leads from one to another, see [Switch].
const (
	NamespaceActive  NamespaceState = iota // also of a namespace that was never in use
	NamespaceDeleted                       // it has all it had: it can be recovered, or purged
	NamespacePurging                       // a purge has begun: it can be purged to the end, and nothing else
	NamespacePurged                        // it has nothing: it can be created anew
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
	ID        string    // opaque, of a store that has one, the same for ever; "" = none
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

// Purger deletes for good.
//
// A purge counts as a reset of every bucket of the namespace: nothing is admitted from 5 s after
// the deletion until the namespace is created anew, and from then on a bucket starts full. The
// name keeps its ID, and generations go on from those of before, so that nothing that a process
// still has of before can come back.
type Purger interface {
	// Purge deletes everything in a namespace that is deleted, is being purged, or was purged:
	// entities, limits, buckets, usage and audit events. There stay the audit events of the
	// namespace itself, marks of settlements, and whether it is disabled. progress, unless nil,
	// is called with the number of records deleted so far by this call. A call that ended in an
	// error, also in the context's, can be made again, and goes on where that one ended. It may
	// wait before it deletes anything, until no process can have tokens of the buckets.
	//
	// It fails with [ErrState] for a namespace that is active, and with [ErrNotFound] for one
	// that was never in use.
	Purge(ctx context.Context, now time.Time, namespace string, progress func(deleted int)) error

	// ListOrphans lists the IDs of namespaces that no name leads to: they have records that only
	// a purge by ID can reach. Of a store without IDs the list is empty.
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
