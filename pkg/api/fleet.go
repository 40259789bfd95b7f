package api

import "time"

// Fleet has the state of all replicas that share the store, as the answering replica knows it. Its own
// numbers are those of the time of the answer; those of the others, of their last reports.
type Fleet struct {
	Time        time.Time `json:"time"`         // of the answer
	StepSeconds int       `json:"step_seconds"` // length of a step of Results
	Begin       time.Time `json:"begin"`        // of the first step
	// Complete is the end of the last step that all replicas have told in whole. Later steps lack the
	// decisions since the last report of each other replica.
	Complete time.Time `json:"complete"`
	// Results has the number of descriptors that all replicas have decided in each step, by result. All
	// have the same number of steps, at most 180. The oldest is first, and the last is not over.
	Results    map[string][]int64 `json:"results"`
	Replicas   []Replica          `json:"replicas"` // the answering one first, the others by their start
	Events     []Event            `json:"events"`   // the newest first, at most 100
	Aggregator *Aggregator        `json:"aggregator,omitempty"`
}

// Replica is one process of the service.
type Replica struct {
	ID            string        `json:"id"` // random, of the process
	Host          string        `json:"host"`
	Version       string        `json:"version"`
	Started       time.Time     `json:"started"`
	Seen          time.Time     `json:"seen"` // time of its last report
	Here          bool          `json:"here"` // it is the one that answers
	Ready         bool          `json:"ready"`
	Reason        string        `json:"reason"` // why it is not ready
	Configuration Configuration `json:"configuration"`
	Store         *StoreState   `json:"store,omitempty"` // absent for a store in the process
	Decisions     int64         `json:"decisions"`       // descriptors decided since its start
	Leases        int64         `json:"leases"`          // that it holds now
	MemoryBytes   int64         `json:"memory_bytes"`    // resident memory of the process
}

// Configuration is the configuration in force of a replica.
type Configuration struct {
	Hash     string    `json:"hash"`
	LoadedAt time.Time `json:"loaded_at"`
	// Error is the reason why newer files are not in force; "" = they are.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// StoreState says whether a store outside the process is available, and which policy decides while it is not.
type StoreState struct {
	Type   string    `json:"type"`           // dynamodb or valkey
	State  string    `json:"state"`          // available, recovering, throttled, unavailable
	Since  time.Time `json:"since,omitzero"` // absent = since the start
	Policy string    `json:"policy"`         // allow, deny or local
	// Cause is the error of a call of the outage; absent = there is none, or it is of another replica.
	Cause string `json:"cause,omitempty"`
}

// EventKind says what an [Event] is about.
type EventKind string

// Kinds of events.
const (
	EventStart     EventKind = "start"     // a replica serves
	EventReload    EventKind = "reload"    // a new configuration is in force
	EventRefused   EventKind = "refused"   // a new configuration is not used
	EventOutage    EventKind = "outage"    // the store is unavailable
	EventRecovered EventKind = "recovered" // the store answers again
	EventBudget    EventKind = "budget"    // usage has reached a threshold of a budget
	EventStop      EventKind = "stop"      // a replica stops
)

// Event is something that happened to a replica.
type Event struct {
	Time    time.Time `json:"time"`
	Replica string    `json:"replica"` // its ID
	Kind    EventKind `json:"kind"`
	Text    string    `json:"text"` // one sentence for people
}

// AggregatorState says how the aggregator of a fleet is.
type AggregatorState string

// States of aggregators.
const (
	AggregatorNotNeeded AggregatorState = "not_needed" // the store counts usage by itself, or keeps none
	AggregatorUnknown   AggregatorState = "unknown"    // its reports cannot be read
	AggregatorUnseen    AggregatorState = "unseen"     // there is no report of the last 3 days
	AggregatorCurrent   AggregatorState = "current"    // at most 5 minutes late
	AggregatorBehind    AggregatorState = "behind"     // it reports, and is later than that
	AggregatorFailing   AggregatorState = "failing"    // it reports that it cannot go on
	AggregatorSilent    AggregatorState = "silent"     // it has reported nothing for longer than that, or was stopped
)

// Aggregator makes usage, and events of budgets, of a table's change stream. It is a function, or one process or more.
type Aggregator struct {
	State     AggregatorState `json:"state"`
	Text      string          `json:"text"`         // the state in one line, for people
	Do        string          `json:"do,omitempty"` // the next step; absent = the state needs no person
	Processes int             `json:"processes"`    // with a report of the last minute; of a function, its instances
	Function  bool            `json:"function"`     // it runs only while there are records
	// Seen is the time of the last report; absent = there is none.
	Seen time.Time `json:"seen,omitzero"`
	// LagSeconds is the age of the oldest decision that may not be counted; absent = not known, or there is none.
	LagSeconds *float64 `json:"lag_seconds,omitempty"`
	Problem    string   `json:"problem,omitempty"` // that the aggregator reports
}

// Lag is LagSeconds as a duration; 0 where it is absent.
func (a *Aggregator) Lag() time.Duration {
	if a.LagSeconds == nil {
		return 0
	}
	return time.Duration(*a.LagSeconds * float64(time.Second))
}
