package limiter

// Source is the place at which a limit was found.
type Source uint8

// The sources, in order of precedence: of the places that have a limit of a name, the first one
// decides about it. At each level stored limits come before those of the configuration file.
const (
	SourceNone                Source = iota
	SourceRequest                    // in the request itself
	SourceEntity                     // entity and resource, stored
	SourceEntityConfig               // entity and resource, from the file
	SourceRule                       // the rule's own
	SourceEntityDefault              // entity, every resource, stored
	SourceEntityDefaultConfig        // entity, every resource, from the file
	SourcePlan                       // the plan that the rule names, or that of the entity; that of its kind comes after the kind
	SourceKindConfig                 // kind of entities, from the file
	SourceResource                   // resource, stored
	SourceResourceConfig             // resource, from the file
	SourceSystem                     // system, stored
	SourceSystemConfig               // system, from the file
)

// from names a place for people, and a plan by its name.
func from(s Source, plan string) string {
	if plan != "" {
		return s.String() + " " + plan
	}
	return s.String()
}

// String names the source for people.
func (s Source) String() string {
	switch s {
	case SourceNone:
		return "none"
	case SourceRequest:
		return "request"
	case SourceRule:
		return "rule"
	case SourcePlan:
		return "plan"
	case SourceKindConfig:
		return "kind (file)"
	case SourceEntity:
		return "entity (stored)"
	case SourceEntityConfig:
		return "entity (file)"
	case SourceEntityDefault:
		return "entity default (stored)"
	case SourceEntityDefaultConfig:
		return "entity default (file)"
	case SourceResource:
		return "resource (stored)"
	case SourceResourceConfig:
		return "resource (file)"
	case SourceSystem:
		return "system (stored)"
	case SourceSystemConfig:
		return "system (file)"
	default:
		return "unknown"
	}
}

// EffectiveLimit is a limit with the place that decides about it.
type EffectiveLimit struct {
	Limit  Limit
	Source Source
	Plan   string // its name, for SourcePlan
}

// From names the place for people, such as "plan pro".
func (l EffectiveLimit) From() string { return from(l.Source, l.Plan) }
