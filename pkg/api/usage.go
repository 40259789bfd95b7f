package api

import "time"

// Usage is the consumption of an entity and a resource in one window.
type Usage struct {
	Entity   Name      `json:"entity"`
	Resource Name      `json:"resource"`
	Window   Window    `json:"window"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"` // the start of the next window
	// Used is by limit, net of refunds; below zero if refunds exceed consumption.
	Used   map[string]Tokens `json:"used"`
	Events int64             `json:"events,omitempty"` // number of records of the consumption; absent = not counted
	// Budget has the tokens that a limit has for the window, as they are in force now: those of the quota that
	// decides, or else of the budget. It is there where it was asked for.
	Budget map[string]int64 `json:"budget,omitempty"`
	// BudgetFrom has the place of each of them, such as entity (stored).
	BudgetFrom map[string]string `json:"budget_from,omitempty"`
}

// Window is the length of the time over which usage is summed, in UTC.
type Window string

// The windows.
const (
	Hour  Window = "hour"
	Day   Window = "day"
	Month Window = "month"
)

// UsageSummary is the sum of usage over entities, resources and windows.
type UsageSummary struct {
	Window  Window               `json:"window"`
	Windows int64                `json:"windows"`        // number of windows with usage, of any entity and resource
	First   time.Time            `json:"first,omitzero"` // start of the first window; absent = there is no usage
	Last    time.Time            `json:"last,omitzero"`  // start of the last one
	Limits  map[string]UsedTotal `json:"limits"`
}

// UsedTotal is the use of one limit.
type UsedTotal struct {
	Total   Tokens `json:"total"`
	Average Tokens `json:"average"` // for each of UsageSummary.Windows
}
