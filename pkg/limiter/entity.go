package limiter

import "time"

// MaxLevels is the greatest number of entities in a chain: an entity and its ancestors.
const MaxLevels = 8

// DefaultResource stands for every resource in an entity's limits that has none of its own.
const DefaultResource = "_default_"

// DefaultNamespace is the namespace of requests that name none.
const DefaultNamespace = "default"

// Entity is the subject of limits: a user, an API key, a project. An entity that was never created
// is valid: it has no parent, and limits of its resource or of the system.
type Entity struct {
	ID        string            // any bytes, not empty
	Name      string            // for people; optional
	Parent    string            // ID of the parent; "" = that of the file, with its Cascade, or none
	Cascade   bool              // the parent consumes the same as the entity
	Plan      string            // name of the plan whose limits it has, see [Static]; "" = that of the file
	Metadata  map[string]string // optional, not interpreted
	CreatedAt time.Time         // set by the store
	Version   uint64            // optimistic lock: set by the store, 0 for an entity that is not stored yet
}
