package controlapi

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Store is the store of entities, limits and namespaces.
type Store = limiter.Control

// Activity is the decisions of the service.
type Activity struct {
	Denied, Busiest, Shadow *TopCounter             // limits by decisions; nil = not counted
	Decided                 func() map[string]int64 // descriptors since Since, by result; nil = not counted
	Since                   time.Time
}

// Config configures an [API]. Now is required.
type Config struct {
	Store    Store           // nil = the store has no control: requests for it are refused
	Buckets  limiter.Buckets // nil = balances cannot be changed: likewise
	Usage    limiter.Usage   // nil = the store has no usage: likewise
	Now      func() time.Time
	Status   api.Status // of the service; Principal and Role are those of each request
	Activity Activity   // the zero value = not counted: requests for it are refused
	InMemory bool       // changes end with the process
	Sources  Sources    // of the limits of buckets
}

// Sources return the origins of limits of buckets. Each may be nil: then the origin is not known.
type Sources struct {
	// Variants names the plans and the rules of a namespace by the variants of their buckets.
	Variants func(namespace string) map[uint64]string
	// Effective returns the limits of an ordinary bucket, see limiter.Limiter.Effective.
	Effective func(ctx context.Context, namespace, entity, resource string, changes ...limiter.Stored) ([]limiter.EffectiveLimit, error)
	// Names returns the names of limits in the configuration: of its levels, plans and rules.
	Names func() map[string]bool
	// Budgets returns those of the configuration.
	Budgets func() *limiter.BudgetSet
	// Plans returns the names of the plans of the configuration.
	Plans func() []string
}

// API has the endpoints of administration.
type API struct {
	cfg      Config
	document []byte
}
