package api

// FileLimits are limits of the configuration file at one of its places.
type FileLimits struct {
	Place    Place            `json:"place"`
	Name     string           `json:"name,omitempty"`     // of the plan, the kind of entities (its prefix) or the rule
	Domain   string           `json:"domain,omitempty"`   // of the rule
	Entity   *Name            `json:"entity,omitempty"`   // of PlaceEntity; for a rule the template, such as key/{key}
	Resource *Name            `json:"resource,omitempty"` // of PlaceResource, PlaceEntity and PlaceKind; for a rule the template
	Limits   map[string]Limit `json:"limits"`             // by name
	Shadow   bool             `json:"shadow,omitempty"`   // of a rule in shadow mode
}

// Place is a place of limits in the configuration file.
type Place string

// The places, from the general to the special.
const (
	PlaceSystem   Place = "system"
	PlaceResource Place = "resource"
	PlaceKind     Place = "kind" // of entities
	PlacePlan     Place = "plan"
	PlaceRule     Place = "rule"
	PlaceEntity   Place = "entity"
)

// Search is the outcome of a search for entities.
type Search struct {
	Items []Found `json:"items"`
	// Complete says that every stored entity was compared. Otherwise a more exact text may find more.
	Complete bool `json:"complete"`
}

// Found is an entity that a search found.
type Found struct {
	ID     Name   `json:"id"`
	Name   string `json:"name,omitempty"`   // for people
	Stored bool   `json:"stored,omitempty"` // in the store
	File   bool   `json:"file,omitempty"`   // in the configuration file
	Active bool   `json:"active,omitempty"` // it was asked for in the last minute, on the answering replica
}

// Family is an entity with its ancestors and its children.
type Family struct {
	// Chain begins with the entity, and ends with its last ancestor.
	Chain []Member `json:"chain"`
	// Children are the first stored children and those of the file, at most 50.
	Children []Name `json:"children"`
	// MoreChildren says that there are more.
	MoreChildren bool `json:"more_children,omitempty"`
}

// Member is an entity in a [Family].
type Member struct {
	ID       Name              `json:"id"`
	Name     string            `json:"name,omitempty"` // for people
	Stored   bool              `json:"stored,omitempty"`
	File     bool              `json:"file,omitempty"`    // the configuration file has it
	Cascade  bool              `json:"cascade,omitempty"` // its parent consumes with it
	Plan     string            `json:"plan,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Disabled bool              `json:"disabled,omitempty"`
}
