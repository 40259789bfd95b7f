package server

import (
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// newFleet returns what tells of this replica, and of the others.
func (s *Service) newFleet() *fleet.Fleet {
	host, _ := os.Hostname() // "" where the system does not tell it
	cfg := fleet.Config{
		Host: host, Version: command.Version(), Started: s.activity.since, Now: s.Clocks.Call,
		Decided: s.RLS.Decided, Health: s.health.State, Events: s.events, Memory: residentBytes, Logger: s.log,
		Tops: map[string]*controlapi.TopCounter{api.TopDenied: s.activity.denied, api.TopBusiest: s.activity.busiest, api.TopShadow: s.activity.shadow},
	}
	cfg.Reports, _ = s.Store.(limiter.Reports) // a store in the process has none
	cfg.Usage, cfg.Budgets = s.Store.Capabilities().UsageSnapshots, func() bool { return s.budgets.Load().Len() > 0 }
	cfg.Aggregators, _ = s.Store.(fleet.Aggregators) // a store in the process has none
	cfg.Counts = s.cfg.Store.Type == config.StoreValkey
	cfg.Usage = cfg.Usage && (!cfg.Counts || s.cfg.Store.Valkey.Usage)
	if table, ok := s.Store.(tableStore); ok {
		cfg.Leases = func() int64 { return table.Stats().Leases }
	}
	return fleet.New(cfg)
}

// budgetEvents bounds the events about shared budgets, which clients that invent names can cause.
type budgetEvents struct {
	mu   sync.Mutex
	last time.Time // of the last one about a shared budget
}

// sharedBudgetPause is the least time between two events about shared budgets.
const sharedBudgetPause = 10 * time.Second

// due reports whether there may be an event.
func (b *budgetEvents) due(shared bool, now time.Time) bool {
	if !shared {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.last) < sharedBudgetPause {
		return false
	}
	b.last = now
	return true
}

// tell reports that usage has reached a threshold of a budget.
func (b *budgetEvents) tell(s *backend, e limiter.BudgetEvent) {
	s.alerts.Tell(e)
	if b.due(e.Shared, s.Clocks.Call()) {
		s.events.Record(api.EventBudget, budgetText(&e))
	}
}

// budgetText is a sentence about the event of a budget. Names stand quoted where they are no plain text.
func budgetText(e *limiter.BudgetEvent) string {
	const most = 64 // bytes of a name
	name := func(n string) string { return shown(n, most) }
	of := " "
	if money.Is(e.Limit) {
		of = " of "
	}
	return fmt.Sprintf("%s has used %d %% of its budget of %s%s%s a %s for %s, namespace %s.",
		name(e.Entity), e.Percent, money.Amount(e.Limit, e.Tokens), of, name(e.Limit), e.Window, name(e.Resource), name(e.Namespace))
}

// shown returns the beginning of a name as people read it.
func shown(name string, most int) string {
	if len(name) > most {
		for most > 0 && !utf8.RuneStart(name[most]) {
			most--
		}
		name = name[:most] + "…"
	}
	return api.Name(name).String()
}
