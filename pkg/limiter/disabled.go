package limiter

// Disabled names the subject that denied a request with [ReasonDisabled].
type Disabled struct {
	// Subject is an entity; a resource, as [ResourceLimitsRef]; or the namespace, as
	// [SystemLimitsRef].
	Subject Ref
	Take    int // index of the denied take
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
