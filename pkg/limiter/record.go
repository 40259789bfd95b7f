package limiter

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Record is the record of a Ref; the zero Record means that there is none.
type Record struct {
	Entity        *Entity  // for RefEntity
	Limits        *Limits  // for the others
	Alone         bool     // no less specific level is asked for names that Limits do not have
	OnUnavailable Policy   // for RefSystemLimits; Unset = not stored
	Budgets       *Budgets // of the Limits; nil = none
	Disabled      bool     // for RefEntity, RefResourceLimits and RefSystemLimits, see [Switch]

	Disabling *Disabling // of a disabled subject; nil = not recorded

	State NamespaceState // of the namespace, for RefSystemLimits
	Since time.Time      // of State, UTC, whole milliseconds; zero for NamespaceActive
}

// Empty reports whether nothing is stored.
func (r Record) Empty() bool {
	return !r.Stored() && !r.Disabled && r.State == NamespaceActive
}

// Stored reports whether the record has more than the switch and the state.
func (r Record) Stored() bool {
	return r.Entity != nil || r.Limits.Len() > 0 || r.OnUnavailable != Unset
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
	case r.Alone && (r.Limits.Len() == 0 || ref.Kind == RefSystemLimits):
		return fmt.Errorf("%w: limits of an entity or a resource stand alone, and no others", ErrInvalid)
	case ref.Kind == RefEntity && ref.Entity == "" && !r.Empty():
		return fmt.Errorf("%w: an entity needs an id", ErrInvalid)
	case ref.Kind == RefEntity && (r.Limits.Len() > 0 || r.Entity != nil && r.Entity.ID != ref.Entity):
		return fmt.Errorf("%w: the record is not one of entity %.100q", ErrInvalid, ref.Entity)
	}
	return r.Budgets.CheckLimits(r.Limits)
}

// Equal reports whether two records have the same contents. Version and CreatedAt of an entity,
// Since and Disabling do not count.
func (r Record) Equal(other Record) bool {
	a, b := r.Entity, other.Entity
	if (a == nil) != (b == nil) || r.Disabled != other.Disabled || r.State != other.State || r.Alone != other.Alone {
		return false
	}
	if a != nil && (a.ID != b.ID || a.Name != b.Name || a.Parent != b.Parent || a.Cascade != b.Cascade || a.Plan != b.Plan || !maps.Equal(a.Metadata, b.Metadata)) {
		return false
	}
	same := r.Limits.Len() == 0 && other.Limits.Len() == 0 || r.Limits.Hash() == other.Limits.Hash()
	return same && r.OnUnavailable == other.OnUnavailable && r.Budgets.Equal(other.Budgets)
}

// Detail writes a record as people read it, for an audit event.
func (r Record) Detail() string {
	var parts []string
	if e := r.Entity; e != nil {
		parts = append(parts, fmt.Sprintf("name %.100q, parent %.100q, cascade %t, metadata of %d", e.Name, e.Parent, e.Cascade, len(e.Metadata)))
		if e.Plan != "" {
			parts = append(parts, fmt.Sprintf("plan %.100q", e.Plan))
		}
	}
	for i := range r.Limits.Len() {
		l := r.Limits.At(i)
		text := l.Name + " " + l.Text()
		if l.MaxDebt != 0 {
			text += " max_debt " + money.Amount(l.Name, max(l.MaxDebt, 0)) // NoDebt is below 0
		}
		parts = append(parts, text+r.Budgets.detail(l.Name))
	}
	if r.Alone {
		parts = append(parts, "alone")
	}
	if r.Disabled {
		parts = append(parts, "disabled")
	}
	if r.State != NamespaceActive {
		parts = append(parts, r.State.String())
	}
	if r.OnUnavailable != Unset {
		parts = append(parts, "on_unavailable "+r.OnUnavailable.String())
	}
	return strings.Join(parts, ", ")
}

// inState returns the record of the namespace with another state. After a purge only the switch
// is left of the record.
func (r Record) inState(to NamespaceState, now time.Time) Record {
	if to == r.State {
		return r
	}
	if to == NamespacePurging {
		r = Record{Disabled: r.Disabled, Disabling: r.Disabling}
	}
	r.State, r.Since = to, time.Time{}
	if to != NamespaceActive {
		r.Since = time.UnixMilli(now.UnixMilli()).UTC()
	}
	return r
}
