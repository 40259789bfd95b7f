package rls

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxCounters is how many counters [Counters] remember. It is the number that limitador holds in memory.
const maxCounters = 10_000

// Counters remember the counters of limits of limitador files that a process used last, for lists. They are safe for
// concurrent use. Create them with [NewCounters].
type Counters struct{ used *lru.Cache[Counter, struct{}] }

// Counter identifies a counter: a bucket of a limit.
type Counter struct{ Domain, Rule, Entity string }

// NewCounters returns an empty memory.
func NewCounters() (*Counters, error) {
	used, err := lru.New[Counter, struct{}](maxCounters)
	return &Counters{used}, err
}

// Used returns the counters, the one used last first; at most 10,000.
func (k *Counters) Used() []Counter {
	all := k.used.Keys()
	slices.Reverse(all)
	return all
}

// note remembers the counters of a call. nil remembers none.
func (k *Counters) note(c *call) {
	if k == nil {
		return
	}
	for i, rule := range c.plan.Applied {
		k.used.Add(Counter{c.plan.Domain.Name(), rule.Name(), c.plan.Request.Takes[i].Entity}, struct{}{})
	}
}
