package dynamo

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// TTLAttribute is the attribute of the table's time to live: Unix seconds.
const TTLAttribute = schema.AttrTTL

// NamespaceID returns the id of a namespace, which it registers if it is new: 11 letters,
// digits, '-' and '_'. Keys of the namespace's records begin with it. Several processes that
// register one at once all get the same id. The table must have passed [CheckTable].
//
// Errors are those of [Store.Read].
func NamespaceID(ctx context.Context, client Client, table, name string, now time.Time) (string, error) {
	return catalog.NamespaceID(ctx, awsdb.ItemsOf(client, table), table, name, now)
}
