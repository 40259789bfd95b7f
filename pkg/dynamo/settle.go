package dynamo

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/catalog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Settle implements limiter.Store by one conditional write, within the budget of a
// decision.
func (s *Store) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	ctx, end, err := s.enter(ctx, s.cfg.Budget)
	if err != nil {
		return false, err
	}
	defer end()
	return s.settlements.Settle(ctx, now, m)
}

// Secret implements limiter.Store by one conditional write. No decision waits for it: it
// may take as long as a change.
func (s *Store) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	ctx, end, err := s.enter(ctx, catalog.ChangeTimeout)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.settlements.Secret(ctx, name, candidate)
}

// enter begins a call of its own, outside of any lane: the context that it returns is
// bounded by a budget, and ends when Close gives up. The caller calls end.
func (s *Store) enter(ctx context.Context, budget time.Duration) (bounded context.Context, end func(), err error) {
	if err := s.begin(); err != nil {
		return nil, nil, err
	}
	if err := awsdb.ContextError(ctx); err != nil {
		s.work.Done()
		return nil, nil, err
	}
	bounded, cancel := s.loop.Within(ctx, budget)
	unhook := context.AfterFunc(s.stopped, cancel)
	return bounded, func() {
		unhook()
		cancel()
		s.work.Done()
	}, nil
}
