package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// SettlementsConfig configures settlements. Items, Table and NamespaceID must be set.
type SettlementsConfig struct {
	Items awsdb.Items
	Table string
	Loop  awsdb.Loop       // by which they wait; nil = awsdb.Goroutines
	Now   func() time.Time // the wall clock; nil = time.Now
	// Attempt is how long one message of a settlement may take; 0 = ChangeTimeout.
	Attempt time.Duration
	// NamespaceID returns the id of a namespace, as that of a [Catalog] does.
	NamespaceID func(ctx context.Context, name string) (string, error)
}

// Settlements is limiter.Settlements in a table. It holds nothing that is to be closed, and
// is safe for concurrent use.
type Settlements struct {
	cfg   SettlementsConfig
	table table
}

// NewSettlements returns settlements. It makes no call.
func NewSettlements(cfg SettlementsConfig) *Settlements {
	if cfg.Loop == nil {
		cfg.Loop = awsdb.Goroutines{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Attempt <= 0 {
		cfg.Attempt = ChangeTimeout
	}
	return &Settlements{cfg: cfg, table: table{items: cfg.Items, name: cfg.Table, loop: cfg.Loop}}
}

// Settle implements limiter.Settlements by one conditional write. It is sent again while
// its outcome is not known, as the context allows: an owner that finds its own mark has
// won. now is the caller's clock as it is: the expiry of a mark was made by such clocks.
//
// A mark is in no index, so that a settlement costs one write unit, also one that is
// lost: DynamoDB bills a condition that does not hold as the write.
func (s *Settlements) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	if err := limiter.CheckMark(m); err != nil {
		return false, err
	}
	if !now.Before(m.Expires) { // rule: a mark that expired is not settled
		return false, nil
	}
	ns, err := s.cfg.NamespaceID(ctx, m.Namespace)
	if err != nil {
		return false, err
	}
	k := schema.MarkKey(ns, m.ID)
	made, found, err := s.table.claim(ctx, schema.PutNew(schema.MarkItem(k, m)), s.cfg.Attempt)
	if err != nil {
		return false, fmt.Errorf("settling a reservation, item %v of table %s: %w", k, s.cfg.Table, err)
	}
	if made {
		return true, nil
	}
	owner, err := schema.ParseMark(s.cfg.Table, k, found)
	return err == nil && owner == m.Owner, err
}
