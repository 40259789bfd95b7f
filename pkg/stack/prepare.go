package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Prepare makes a table ready for replicas that may only take: it puts the schema version,
// and registers namespaces. It returns the namespaces with their ids, in the order of names.
// Records that are there already stay. It needs the permissions of the policy full.
//
// A name has 1 to 200 bytes; for others the error is [ErrInvalid], and the table is not asked.
// Further errors are those of [dynamo.CheckTable] and [dynamo.NamespaceID].
func Prepare(ctx context.Context, client dynamo.Client, table string, names []string, now time.Time) ([]Namespace, error) {
	for _, name := range names {
		if name == "" || len(name) > maxNamespace {
			return nil, fmt.Errorf("namespace %.200q: %w: it must be 1 to %d bytes", name, ErrInvalid, maxNamespace)
		}
	}
	if err := dynamo.CheckTable(ctx, client, table); err != nil {
		return nil, err
	}
	namespaces := make([]Namespace, len(names))
	for i, name := range names {
		id, err := dynamo.NamespaceID(ctx, client, table, name, now)
		if err != nil {
			return nil, fmt.Errorf("namespace %.100q: %w", name, err)
		}
		namespaces[i] = Namespace{Name: name, ID: id}
	}
	return namespaces, nil
}
