package limiter

import "strings"

// RefKind is the kind of a catalog record.
type RefKind uint8

// The kinds of records.
const (
	RefEntity         RefKind = iota // the entity itself
	RefEntityLimits                  // its limits for a resource, or for DefaultResource
	RefResourceLimits                // the limits of a resource
	RefSystemLimits                  // the limits of all other requests, and the policy
)

// Ref names a catalog record.
type Ref struct {
	Kind     RefKind
	Entity   string // for RefEntity and RefEntityLimits
	Resource string // for RefEntityLimits and RefResourceLimits
}

// EntityRef names an entity.
func EntityRef(id string) Ref { return Ref{Kind: RefEntity, Entity: id} }

// EntityLimitsRef names an entity's limits for a resource.
func EntityLimitsRef(id, resource string) Ref {
	return Ref{Kind: RefEntityLimits, Entity: id, Resource: resource}
}

// ResourceLimitsRef names a resource's limits.
func ResourceLimitsRef(resource string) Ref { return Ref{Kind: RefResourceLimits, Resource: resource} }

// SystemLimitsRef names the limits of requests without more specific ones.
func SystemLimitsRef() Ref { return Ref{Kind: RefSystemLimits} }

// clone returns a ref that shares no memory with a request.
func (r Ref) clone() Ref {
	r.Entity, r.Resource = strings.Clone(r.Entity), strings.Clone(r.Resource)
	return r
}
