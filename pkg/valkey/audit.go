package valkey

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
)

// AuditDelay is how old an audit event is at least when it is read from an [AuditStream].
const AuditDelay = catalog.AuditDelay

// AuditStream is the audit events of a table, as the stream of an aggregator that archives them. It is safe for
// concurrent use. Create it with [OpenAuditStream].
//
// It reads events in windows of 10 minutes that are older than [AuditDelay], and leaves them where they are. Events
// that are kept for less than the aggregator has stopped are lost, and counted as a loss.
type AuditStream struct {
	*catalog.AuditStream

	db *items.DB
}

var (
	_ aggregator.Source  = (*AuditStream)(nil)
	_ aggregator.Leases  = (*AuditStream)(nil)
	_ aggregator.Reports = (*AuditStream)(nil)
)

// OpenAuditStream connects to the server of a table that is there. It takes the connection, the name, the clocks and
// AuditRetention, which must be that of the stores of the table. Errors are those of [Open].
func OpenAuditStream(ctx context.Context, cfg Config) (*AuditStream, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	retention := cfg.AuditRetention
	if retention <= 0 {
		retention = limiter.AuditRetention
	}
	of := cfg.items()
	of.Recreate, of.NoUsage, of.Replica = false, true, false
	db, err := items.Open(ctx, of, false)
	if err != nil {
		return nil, err
	}
	return &AuditStream{db: db, AuditStream: catalog.NewAuditStream(catalog.AuditStreamConfig{
		Items: db.Session(), Table: cfg.Name, ID: db.Table, Now: cfg.now, Retention: retention + sweepGrace,
	})}, nil
}

// Close closes the connection. Calls after it fail.
func (s *AuditStream) Close() { s.db.Close() }
