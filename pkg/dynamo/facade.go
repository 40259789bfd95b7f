package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// The client's side of the store, whose code is in package awsdb.
type (
	// Client is the part of DynamoDB that the store uses; *dynamodb.Client is one.
	// It must not retry by itself: a write that was applied and whose reply was lost
	// would be applied twice. [NewClient] returns a client that does not retry.
	Client = awsdb.Client
	// ClientConfig configures a client. The zero ClientConfig finds region and
	// credentials where every AWS program does: environment, shared files, role.
	ClientConfig = awsdb.ClientConfig
	// Clock is this machine's clock, corrected by the Date headers of DynamoDB's
	// replies as far as they prove it wrong. Create it with [NewClock] and set it in
	// [ClientConfig] and [Config].
	Clock = awsdb.Clock
	// ClockState is the state of a [Clock].
	ClockState = awsdb.ClockState
	// Condition says whether DynamoDB answers calls.
	Condition = awsdb.Condition
	// State says whether DynamoDB answers, and since when.
	State = awsdb.State
)

// The conditions.
const (
	Available   = awsdb.Available
	Recovering  = awsdb.Recovering  // DynamoDB answers again; the store makes few calls at a time
	Throttled   = awsdb.Throttled   // DynamoDB answers with throttles only
	Unavailable = awsdb.Unavailable // DynamoDB does not answer, or refuses all calls
)

const (
	// DefaultClockTolerance is the tolerance of a [Clock] that sets none.
	DefaultClockTolerance = awsdb.DefaultClockTolerance
	// DefaultMaxClockOffset is how far the Date of a reply may be from this machine's clock,
	// where [Clock.WithMaxOffset] says nothing else.
	DefaultMaxClockOffset = awsdb.DefaultMaxClockOffset
)

// NewClient returns a client for the store. It never retries, because a retried write
// can be applied twice. For a local endpoint it needs no credentials. It reads the
// environment and shared files, and makes no call. Errors wrap limiter.ErrInvalid.
func NewClient(ctx context.Context, cfg ClientConfig) (*dynamodb.Client, error) {
	return awsdb.NewClient(ctx, cfg)
}

// NewClock returns a clock that reads time with now, nil = time.Now, and is trusted
// while it can be off by at most tolerance, 0 = DefaultClockTolerance.
func NewClock(now func() time.Time, tolerance time.Duration) *Clock {
	return awsdb.NewClock(now, tolerance)
}

// IsLocalEndpoint reports whether the URL is of a DynamoDB for development: on this
// machine, on a private address, or under a name without a domain, as containers have.
// Only there the program creates tables and needs no credentials.
func IsLocalEndpoint(endpoint string) bool { return awsdb.IsLocalEndpoint(endpoint) }

// ErrDenied says that the role of the caller lacks a permission. Errors that wrap it
// wrap limiter.ErrInvalid too: no policy admits a request because of them.
var ErrDenied = awsdb.ErrDenied

// CorruptError says that an item of the table is not as this program writes it. It
// wraps limiter.ErrInvalid: such an item never counts as absent.
type CorruptError = schema.CorruptError

// SchemaVersion is the version of the table's layout that this program reads and writes.
const SchemaVersion = catalog.SchemaVersion

// TableInput describes the table that [CreateTable] creates and [CheckTable]
// requires.
func TableInput(table string) *dynamodb.CreateTableInput { return catalog.TableInput(table) }

// CreateTable creates the table, unless it is there, and checks it. It is for local
// endpoints: on AWS the table comes from the stack. Errors are those of [CheckTable].
func CreateTable(ctx context.Context, client Client, table string) error {
	return catalog.CreateTable(ctx, client, table)
}

// CheckTable reports why the table cannot be used: it is missing, not ready, of another
// shape, or of another schema version. In a table without a schema version it puts its own; it
// changes nothing else.
//
// Errors wrap limiter.ErrInvalid where only a change of table, permission or program
// helps, and limiter.ErrUnavailable where another try may.
func CheckTable(ctx context.Context, client Client, table string) error {
	return catalog.CheckTable(ctx, client, table)
}
