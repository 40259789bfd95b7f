package limiter

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// Control is the part of a store that operators use while it serves decisions.
// storetest.RunControl holds stores against it. Every method has the errors of a [Store],
// and an error means that nothing was applied unless it wraps [ErrUncertain].
type Control interface {
	Editor
	Directory
	AuditLog
	Purger
}

// Editor changes entities and limits.
type Editor interface {
	// Edit replaces the record of e.Ref by the record that e.Change makes of it. No other
	// change of the namespace comes between. A change that alters nothing is not applied:
	// it raises no generation and leaves no audit event. An entity keeps CreatedAt, and
	// gets a Version that no record of this ID had before; deleting it deletes its limits.
	// Edit refuses the same records with [ErrInvalid] that PutEntity and PutLimits refuse.
	//
	// An edit that deletes or recovers a namespace which was never in use fails with
	// [ErrNotFound]. One that creates it is a change, and brings it into use.
	Edit(ctx context.Context, now time.Time, namespace string, e Edit) (Edited, error)
}

// Edit is one change of a record.
type Edit struct {
	Ref Ref
	// Change returns the record to store, an empty one to delete. It must neither block nor
	// alter before. A store may call it several times, and returns its error unchanged. It
	// does not change Record.Disabled and Record.State.
	Change func(before Record) (after Record, err error)
	Switch Switch // other than Leave: what it says is changed, and Change is not called
	DryRun bool   // every check is made, and nothing is applied
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

// ReplaceLimits returns the Change of [Catalog.PutLimits], which stores r whatever was there. It
// refuses with [ErrInvalid] an [EntityRef].
func ReplaceLimits(ref Ref, r Record) (change func(before Record) (after Record, err error), err error) {
	if ref.Kind == RefEntity {
		return nil, fmt.Errorf("%w: an entity is stored with PutEntity", ErrInvalid)
	}
	return func(Record) (Record, error) { return r, nil }, nil
}

// Edited is the outcome of an [Edit]. Records are shared and must not be changed.
type Edited struct {
	Before, After Record
	Changed       bool // or would be, in a dry run
	Limits        int  // number of limit records that were deleted with an entity
}

// Directory lists stored records. A list is in the order of bytes of names, or in an order
// of the store's own, the same on every page. Records that change between two pages may be
// on both or on neither.
type Directory interface {
	// ListEntities lists the stored entities that f selects.
	ListEntities(ctx context.Context, namespace string, f EntityFilter, p Page) (PageOf[Stored], error)
	// ListLimits lists the stored limits that f selects.
	ListLimits(ctx context.Context, namespace string, f LimitsFilter, p Page) (PageOf[Stored], error)
	// ListNamespaces lists the namespaces that f selects of those in use: those of a decision or
	// a change, ever. A read of a record by an operator brings none into use.
	ListNamespaces(ctx context.Context, f NamespaceFilter, p Page) (PageOf[Namespace], error)
	// GetNamespace returns a namespace, in any state, or [ErrNotFound] where it was never in use.
	GetNamespace(ctx context.Context, name string) (Namespace, error)
	// ListDisabled lists the disabled subjects: entities, resources as [ResourceLimitsRef], and
	// the namespace as [SystemLimitsRef].
	ListDisabled(ctx context.Context, namespace string, p Page) (PageOf[Ref], error)
	// Get returns the record of ref, an empty one where there is none. Unlike Read it brings
	// no namespace into use.
	Get(ctx context.Context, namespace string, ref Ref) (Record, error)
}

// AuditLog lists the audit events of a store whose capabilities have AuditLogging; of any
// other the list is empty.
type AuditLog interface {
	// ListEvents lists the events of a subject, see [Ref.AuditSubject], the newest first.
	ListEvents(ctx context.Context, namespace string, subject Ref, p Page) (PageOf[AuditEvent], error)
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
}

// Selects reports whether the filter selects the limits of ref.
func (f LimitsFilter) Selects(ref Ref) bool {
	return ref.Kind != RefEntity && (!f.Entities || ref.Kind == RefEntityLimits) && (f.Entity == "" || ref.Kind == RefEntityLimits && ref.Entity == f.Entity) &&
		(f.Resource == "" || ref.Kind != RefSystemLimits && ref.Resource == f.Resource)
}

// Stored is a record and its name.
type Stored struct {
	Ref    Ref
	Record Record
}

// Bounds of a [Page].
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page asks for a part of a list.
type Page struct {
	After string // PageOf.Next of the page before; "" = from the beginning
	Size  int    // most items, 1 to MaxPage; 0 = DefaultPage
}

// PageOf is a part of a list. It can be empty though more follow.
type PageOf[V any] struct {
	Items []V
	Next  string // the cursor of the next page; "" = this is the last one
}

// Checked returns the page with its default, or [ErrInvalid] for a size out of range.
func (p Page) Checked() (Page, error) {
	if p.Size == 0 {
		p.Size = DefaultPage
	}
	if p.Size < 0 || p.Size > MaxPage {
		return p, fmt.Errorf("%w: a page has 1 to %d items, not %d", ErrInvalid, MaxPage, p.Size)
	}
	return p, nil
}

// Check refuses, with [ErrInvalid], a record that cannot be stored under ref. An empty
// record can.
func (r Record) Check(ref Ref) error {
	switch {
	case ref.Kind > RefSystemLimits || r.OnUnavailable > Local:
		return fmt.Errorf("%w: there is no record of kind %d, or no policy %d", ErrInvalid, ref.Kind, r.OnUnavailable)
	case ref.Kind == RefEntityLimits && r.Disabled:
		return fmt.Errorf("%w: limits of an entity cannot be disabled", ErrInvalid)
	case ref.Kind != RefSystemLimits && r.State != NamespaceActive:
		return fmt.Errorf("%w: the record of the system alone has the state of the namespace", ErrInvalid)
	case ref.Kind != RefSystemLimits && r.OnUnavailable != Unset:
		return fmt.Errorf("%w: only the system's limits carry a policy", ErrInvalid)
	case ref.Kind != RefEntity && r.Entity != nil:
		return fmt.Errorf("%w: an entity cannot be stored as limits", ErrInvalid)
	case ref.Kind == RefEntity && ref.Entity == "" && !r.Empty():
		return fmt.Errorf("%w: an entity needs an id", ErrInvalid)
	case ref.Kind == RefEntity && (r.Limits.Len() > 0 || r.Entity != nil && r.Entity.ID != ref.Entity):
		return fmt.Errorf("%w: the record is not one of entity %.100q", ErrInvalid, ref.Entity)
	}
	return r.Budgets.CheckLimits(r.Limits)
}

// Equal reports whether two records say the same. Version and CreatedAt of an entity, and
// Since, do not count.
func (r Record) Equal(other Record) bool {
	a, b := r.Entity, other.Entity
	if (a == nil) != (b == nil) || r.Disabled != other.Disabled || r.State != other.State {
		return false
	}
	if a != nil && (a.ID != b.ID || a.Name != b.Name || a.Parent != b.Parent || a.Cascade != b.Cascade || !maps.Equal(a.Metadata, b.Metadata)) {
		return false
	}
	same := r.Limits.Len() == 0 && other.Limits.Len() == 0 || r.Limits.Hash() == other.Limits.Hash()
	return same && r.OnUnavailable == other.OnUnavailable && r.Budgets.Equal(other.Budgets)
}

// MaxPrincipal is the greatest length of a principal's name in an audit event, in bytes.
const MaxPrincipal = 256

type principalKey struct{}

// WithPrincipal returns a context whose changes are audited under the name of an
// authenticated caller. A longer name than MaxPrincipal is cut.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name[:min(len(name), MaxPrincipal)])
}

// PrincipalFrom returns the name given to WithPrincipal; "" = none.
func PrincipalFrom(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}
