package dynamo

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// DefaultAttempt is how long one message to DynamoDB may take. It is long for
	// DynamoDB, and short for a caller that waits behind a message that is lost.
	DefaultAttempt = engine.DefaultAttempt
	// DefaultBudget is how long a decision may take, and how old a planned write may be
	// that is sent.
	DefaultBudget = engine.DefaultBudget
	// DefaultIdle is how long this process remembers a bucket that is not asked for.
	DefaultIdle = engine.DefaultIdle
	// DefaultMaxLanes is how many buckets this process remembers, about 60 MB of memory.
	DefaultMaxLanes = engine.DefaultMaxLanes
	// DefaultShardUnits is the number of write units a second that DynamoDB grants one item.
	DefaultShardUnits = engine.DefaultShardUnits
	// DefaultQuiet is how long two shards must be used little before they are merged.
	DefaultQuiet = engine.DefaultQuiet
)

// Config configures a store. Table must be set.
type Config = engine.StoreConfig

// Store is a limiter.Store in a DynamoDB table. It is safe for concurrent use. Create it
// with [New].
type Store = engine.Store

// Stats counts the work of a store since it was made. See its fields.
type Stats = engine.Stats

// New returns a store on a table, which must exist. It sends nothing. Its errors wrap
// limiter.ErrInvalid.
func New(client Client, cfg Config) (*Store, error) {
	if client == nil || cfg.Table == "" {
		return nil, fmt.Errorf("%w: a DynamoDB store needs a client and the name of a table", limiter.ErrInvalid)
	}
	return engine.NewStore(awsdb.ItemsOf(client, cfg.Table), cfg)
}
