package limiter

import "context"

// Control is the part of a store that operators use while it serves decisions. storetest.RunControl
// tests stores against it. Every method has the errors of a [Store], and an error means that
// nothing was applied unless it wraps [ErrUncertain].
type Control interface {
	Editor
	Directory
	AuditLog
	Purger
}

// Directory lists stored records. A list is in the order of bytes of names, or in an order
// of the store's own, the same on every page. Records that change between two pages may be
// on both or on neither.
type Directory interface {
	// ListEntities lists the stored entities that f selects.
	ListEntities(ctx context.Context, namespace string, f EntityFilter, p Page) (PageOf[Stored], error)
	// ListLimits lists the stored limits that f selects.
	ListLimits(ctx context.Context, namespace string, f LimitsFilter, p Page) (PageOf[Stored], error)
	// ListNamespaces lists the namespaces that f selects of those that a decision or a change ever
	// used. An operator's read of a record brings no namespace into use.
	ListNamespaces(ctx context.Context, f NamespaceFilter, p Page) (PageOf[Namespace], error)
	// GetNamespace returns a namespace, in any state, or [ErrNotFound] where it was never in use.
	GetNamespace(ctx context.Context, name string) (Namespace, error)
	// ListDisabled lists the disabled subjects: entities, resources as [ResourceLimitsRef], and
	// the namespace as [SystemLimitsRef]. Their records say since when.
	ListDisabled(ctx context.Context, namespace string, p Page) (PageOf[Stored], error)
	// Get returns the record of ref, an empty one where there is none. Unlike Read it brings
	// no namespace into use.
	Get(ctx context.Context, namespace string, ref Ref) (Record, error)
}

// EntityFilter selects entities. The zero value selects all.
type EntityFilter struct {
	Parent string // only children of this entity; "" = all
}

// LimitsFilter selects limits. The zero value selects all.
type LimitsFilter struct {
	Entity   string // only those of this entity; "" = all
	Resource string // only those for this resource; "" = all
	Entities bool   // only those of entities
	General  bool   // only those of the system and of resources
}

// Selects reports whether the filter selects the limits of ref.
func (f LimitsFilter) Selects(ref Ref) bool {
	return ref.Kind != RefEntity && (!f.Entities || ref.Kind == RefEntityLimits) && (!f.General || ref.Kind != RefEntityLimits) && (f.Entity == "" || ref.Kind == RefEntityLimits && ref.Entity == f.Entity) &&
		(f.Resource == "" || ref.Kind != RefSystemLimits && ref.Resource == f.Resource)
}

// Stored is a record and its name.
type Stored struct {
	Ref    Ref
	Record Record
}
