package limiter

// Source is the level at which a bucket's limits were found.
type Source uint8

// The sources, in order of precedence. At each level stored limits win over
// those of the configuration file.
const (
	SourceNone                Source = iota
	SourceRequest                    // the request's or rule's own
	SourceEntity                     // entity and resource, stored
	SourceEntityConfig               // entity and resource, from the file
	SourceEntityDefault              // entity, every resource, stored
	SourceEntityDefaultConfig        // entity, every resource, from the file
	SourceResource                   // resource, stored
	SourceResourceConfig             // resource, from the file
	SourceSystem                     // system, stored
	SourceSystemConfig               // system, from the file
)

// String names the source for people.
func (s Source) String() string {
	switch s {
	case SourceNone:
		return "none"
	case SourceRequest:
		return "rule"
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
