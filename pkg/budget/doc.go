// Package budget detects when the usage of a calendar window reaches thresholds of a budget.
//
// A token bucket has no calendar: it refills all the time. A [limiter.Budget] is an amount of tokens
// of one limit for an hour, a day or a month of UTC. It is compared with the usage of that window,
// and admits or denies nothing. A [Set] finds the budget of an entity and a resource: the most
// specific one. At each of the [Thresholds] there is one [Event].
//
// The files rest on each other in this order: threshold.go, set.go, event.go.
package budget
