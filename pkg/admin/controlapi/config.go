package controlapi

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Store is the store of entities, limits and namespaces.
type Store = limiter.Control

// Activity is the decisions of the service.
type Activity struct {
	Denied, Busiest, Shadow *TopCounter             // limits by decisions; nil = not counted
	Decided                 func() map[string]int64 // descriptors since Since, by result; nil = not counted
	DeniedBy                func() map[string]int64 // those that were denied, by reason; nil = not counted
	Since                   time.Time
}

// Config configures an [API]. Now is required.
type Config struct {
	Store   Store           // nil = the store has no control: requests for it are refused
	Buckets limiter.Buckets // nil = balances cannot be changed: likewise
	Usage   limiter.Usage   // nil = the store has no usage: likewise
	Now     func() time.Time
	Status  api.Status // of the service; Principal and Role are those of each request
	// Present sets the members of a status that change; nil = they are not known.
	Present  func(ctx context.Context, s *api.Status)
	Activity Activity // the zero value = not counted: requests for it are refused
	InMemory bool     // changes end with the process
	Sources  Sources  // of the limits of buckets
	Fleet    Fleet    // of all replicas; nil = not known: requests for it are refused
}

// effectiveSource returns the limits of an ordinary bucket, see limiter.Limiter.Effective.
type effectiveSource = func(ctx context.Context, namespace, entity, resource string, changes ...limiter.Stored) ([]limiter.EffectiveLimit, error)

// Sources return the origins of limits of buckets. Each may be nil: then the origin is not known.
type Sources struct {
	// Variants names the plans and the rules of a namespace by the variants of their buckets.
	Variants func(namespace string) map[uint64]string
	// Effective returns the limits that decide.
	Effective effectiveSource
	// Dropped returns the limits that an ordinary bucket has no room for, see limiter.Snapshot.Dropped.
	Dropped func(entity, resource string, stored ...limiter.Stored) []limiter.EffectiveLimit
	// Names returns the names of limits in the configuration: of its levels, plans and rules.
	Names func() map[string]bool
	// Budgets returns those of the configuration.
	Budgets func() *limiter.BudgetSet
	// Plans returns the names of the plans of the configuration.
	Plans func() []string
	// File returns the configuration in force, not to be changed.
	File func() *File
}

// file returns the configuration in force, or an empty one where there is none.
func (s *Sources) file() *File {
	if s.File == nil {
		return new(File)
	}
	return s.File()
}

// File is a configuration in force.
type File struct {
	Rules   *descriptor.Rules
	Static  limiter.Static
	Budgets *limiter.BudgetSet
}

// Fleet answers for all replicas that share the store of this service, as far as they are known. An answer
// does not fail where the store does: it has fewer replicas then.
type Fleet interface {
	State(ctx context.Context) *api.Fleet
	// Top returns the rows of the picked keys with the most events, at most n, in order. by is
	// api.TopDenied, api.TopBusiest or api.TopShadow.
	Top(ctx context.Context, by string, n int, f TopFilter) []TopRow
}
