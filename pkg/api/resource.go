package api

import (
	"encoding/json"
	"time"
)

// Namespace is a namespace that was ever used, by a decision or a change.
type Namespace struct {
	Name      Name           `json:"name"`
	ID        string         `json:"id,omitempty"` // in a table of a fleet: the beginning of its keys
	CreatedAt time.Time      `json:"created_at,omitzero"`
	State     NamespaceState `json:"state"`
	Since     time.Time      `json:"since,omitzero"`     // of the state; absent for StateActive
	Disabled  bool           `json:"disabled,omitempty"` // see [Disabled]
}

// NamespaceState says whether a namespace is in use. In any state but StateActive, requests that
// would take from it are denied, and its entities and limits cannot be changed.
type NamespaceState string

// The states of namespaces.
const (
	StateActive  NamespaceState = "active"
	StateDeleted NamespaceState = "deleted" // its content is still there: it can be recovered, or purged
	StatePurging NamespaceState = "purging" // a purge has begun and can be completed
	StatePurged  NamespaceState = "purged"  // its content is gone: it can be created anew
)

// Orphan is an ID in a table of a fleet that belongs to no namespace, and the name of its former
// namespace.
type Orphan struct {
	ID        string    `json:"id"`
	Name      Name      `json:"name"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// Purged is the progress of a purge.
type Purged struct {
	Deleted int  `json:"deleted"` // records, by this request
	Done    bool `json:"done"`    // false: repeat the request to continue
}

// Entity is a stored entity: a user, an API key, a project.
type Entity struct {
	ID        Name              `json:"id"`
	Name      string            `json:"name,omitempty"`     // for people
	Parent    Name              `json:"parent,omitempty"`   // ID of the parent; absent = none
	Cascade   bool              `json:"cascade,omitempty"`  // the parent consumes with the entity
	Plan      string            `json:"plan,omitempty"`     // whose limits the entity has, a name under plans of the configuration
	Metadata  map[string]string `json:"metadata,omitempty"` // not interpreted
	CreatedAt time.Time         `json:"created_at,omitzero"`
	Disabled  bool              `json:"disabled,omitempty"` // see [Disabled]; not changed by a PUT of the entity
	// PlanUnknown says that the configuration in force has no such plan: limits of other levels count in its
	// place. Only a GET of one entity has it.
	PlanUnknown bool   `json:"plan_unknown,omitempty"`
	ETag        string `json:"etag,omitempty"`
}

// Limits are stored limits of the system, of a resource, or of an entity for a resource.
type Limits struct {
	Level    Level `json:"level"`
	Entity   *Name `json:"entity,omitempty"`   // of LevelEntity
	Resource *Name `json:"resource,omitempty"` // of LevelResource and LevelEntity; _default_ = every other
	// Limits are by name.
	Limits map[string]Limit `json:"limits"`
	// Inherit is false where the limits stand alone: names that they do not have are those of no
	// less specific level. Absent, or true: each name that they do not have is. Not of LevelSystem.
	Inherit *bool `json:"inherit,omitempty"`
	// OnUnavailable is allow, deny or local, and only for LevelSystem; absent = the
	// configuration's.
	OnUnavailable string `json:"on_unavailable,omitempty"`
	// Disabled is the state of the resource, or for LevelSystem of the namespace, see [Disabled]. A
	// PUT of the limits does not change it.
	Disabled bool   `json:"disabled,omitempty"`
	ETag     string `json:"etag,omitempty"`
}

// EffectiveLimit is the limit of a name that decides for an entity and a resource.
type EffectiveLimit struct {
	Name   string `json:"name"`
	Limit  Limit  `json:"limit"`
	Source string `json:"source"` // the level that it is from, such as "entity (stored)"
}

// LimitsChange is the outcome of a PUT or a DELETE of limits.
type LimitsChange = LimitingChange[Limits]

// EntityChange is the outcome of a PUT of an entity, which may change its plan.
type EntityChange = LimitingChange[Entity]

// LimitingChange is the outcome of a change that may have an effect on limits.
type LimitingChange[V any] struct {
	Change[V]

	// Effective are the limits that decide for the subject of the change, before and after
	// it. A resource or an entity that the subject leaves open has no limits of its own. Absent:
	// they are not known.
	Effective *Effective `json:"effective,omitempty"`
}

// Effective are limits by name, before and after a change.
type Effective struct {
	Before []EffectiveLimit `json:"before"`
	After  []EffectiveLimit `json:"after"`
}

// Disabled says whether an entity, a resource or a namespace is disabled. Every request that would
// take from a disabled one is denied, and charges are booked.
type Disabled struct {
	Level    Level `json:"level"`              // LevelNamespace, LevelResource or LevelEntity
	Entity   *Name `json:"entity,omitempty"`   // of LevelEntity
	Resource *Name `json:"resource,omitempty"` // of LevelResource
	Disabled bool  `json:"disabled"`

	Since  time.Time `json:"since,omitzero"`   // of a disabled one; absent = not recorded
	By     string    `json:"by,omitempty"`     // the principal that disabled it
	Reason string    `json:"reason,omitempty"` // that the principal gave
	// Note says that the subject is nowhere, and which may be meant. Only a GET of one subject has it.
	Note string `json:"note,omitempty"`
}

// Level is the level of limits.
type Level string

// The levels, from the general to the special.
const (
	LevelSystem   Level = "system"
	LevelResource Level = "resource"
	LevelEntity   Level = "entity"
	// LevelNamespace is a level of [Disabled] only.
	LevelNamespace Level = "namespace"
)

// List is one page of a list.
type List[V any] struct {
	Items []V    `json:"items"`
	Next  string `json:"next,omitempty"` // the parameter after of the next page; absent = the last page
}

// Change is the outcome of a PUT or a DELETE.
type Change[V any] struct {
	Result Result `json:"result"`
	DryRun bool   `json:"dry_run,omitempty"` // the result is that of a change that was not made
	// InMemory says that the store of the service has no data directory: the change ends with its
	// process.
	InMemory bool `json:"in_memory,omitempty"`
	Before   *V   `json:"before,omitempty"` // absent = there was none
	After    *V   `json:"after,omitempty"`  // absent = there is none
	// Note says why the change may not be the one that was meant. Only one without an effect has it.
	Note string `json:"note,omitempty"`
}

// Result is the effect of a change.
type Result string

// The results of changes.
const (
	Created   Result = "created"
	Changed   Result = "changed"
	Unchanged Result = "unchanged"
	Deleted   Result = "deleted"
	Repeated  Result = "repeated" // of a bucket: a change with the same Once was made before
)

// AuditEvent is one change of entities or limits.
type AuditEvent struct {
	ID        string          `json:"id"`
	Time      time.Time       `json:"time"`
	Principal string          `json:"principal,omitempty"` // of the credential; absent = none was recorded
	Action    string          `json:"action"`              // entity.put, limits.delete, bucket.reset, ...
	Level     Level           `json:"level"`               // of the subject
	Entity    *Name           `json:"entity,omitempty"`    // of LevelEntity
	Resource  *Name           `json:"resource,omitempty"`  // of LevelResource, and of an entity's limits
	Detail    string          `json:"detail,omitempty"`    // for people
	Reason    string          `json:"reason,omitempty"`    // that the principal gave, at most 256 characters
	Before    json.RawMessage `json:"before,omitempty"`    // an Entity, Limits or Disabled; absent = none, or not recorded
	After     json.RawMessage `json:"after,omitempty"`
}

// Status is the state of the replica that answers, and the principal of the request. Members below Can
// are absent where a command works on a table without a service.
type Status struct {
	Version   string       `json:"version"`
	Principal string       `json:"principal"` // of the request
	Role      string       `json:"role"`      // of the principal: read, operate or administer
	Store     string       `json:"store"`     // embedded, embedded with data, dynamodb or valkey
	Can       Capabilities `json:"can"`

	Started       time.Time      `json:"started,omitzero"`
	UptimeSeconds int64          `json:"uptime_seconds,omitempty"`
	Ready         *bool          `json:"ready,omitempty"`  // for traffic
	Reason        string         `json:"reason,omitempty"` // why it is not ready
	Configuration *Configuration `json:"configuration,omitempty"`
	Files         []string       `json:"files,omitempty"`        // of the configuration in force: absolute names, its own file first
	StoreState    *StoreState    `json:"store_state,omitempty"`  // absent for a store in the process
	Leases        int64          `json:"leases,omitempty"`       // that it holds now
	MemoryBytes   int64          `json:"memory_bytes,omitempty"` // resident memory of the process
	// LimitsNotDefined are the names of limits that requests of the last ten minutes consumed, and that no level
	// defines: such requests are denied. There are at most 64.
	LimitsNotDefined []string    `json:"limits_not_defined,omitempty"`
	Replicas         []Replica   `json:"replicas,omitempty"`   // that share the store, as far as they are known
	Aggregator       *Aggregator `json:"aggregator,omitempty"` // of the store's usage
	// Problems need a person. Absent = all is well.
	Problems []StatusProblem `json:"problems,omitempty"`
}

// StatusProblem is a state of a service that needs a person.
type StatusProblem struct {
	What    string    `json:"what"`
	Since   time.Time `json:"since,omitzero"` // absent = not known
	Do      string    `json:"do"`             // the next step
	Section string    `json:"section"`        // of docs/operations.md, its heading
}

// Sections of docs/operations.md that problems are of.
const (
	SectionDenial   = "Unexpected denial"
	SectionEnforced = "Limit not enforced"
	SectionCascade  = "Cascade"
	SectionBudget   = "Over budget"
	SectionUsage    = "Usage late or missing"
	SectionOutage   = "Store outage"
	SectionReplica  = "A replica in trouble"
)

// Capabilities are the abilities of a store, beyond entities and limits.
type Capabilities struct {
	Audit   bool `json:"audit"`
	Usage   bool `json:"usage"`
	Buckets bool `json:"buckets"` // balances can be read and changed
}
