package catalog

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Form returns the form of the items of a namespace's buckets: schema.FormOld until an
// operator has raised it, and for a namespace that was not used yet. A change is seen
// within one poll and the time of a read, well below 5 s.
func (n *namespaces) Form(name string) int {
	if sp, ok := n.spaces.Load(name); ok {
		return int(sp.(*space).form.Load())
	}
	return schema.FormOld
}

// readForms reads the records of those namespaces again whose form may still rise.
func (n *namespaces) readForms(ctx context.Context, spaces []*space) error {
	var keys []schema.Key
	old := make(map[schema.Key]*space)
	for _, sp := range spaces {
		if sp.form.Load() == schema.FormOld {
			k := schema.NamespaceKey(sp.name)
			keys, old[k] = append(keys, k), sp
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := n.table.read(ctx, keys)
	if err != nil {
		return fmt.Errorf("forms of namespaces: %w", err)
	}
	for k, item := range found {
		ns, err := schema.ParseNamespace(n.table.name, k, item)
		if err != nil {
			return err
		}
		if sp := old[k]; sp.id == ns.ID && ns.Form != schema.FormOld {
			sp.form.Store(int32(ns.Form)) // #nosec G115 -- 1 or 2
			n.log.InfoContext(ctx, "items of buckets come into the present form from now on", "namespace", sp.name)
		}
	}
	return nil
}

// Namespaces returns all namespaces of a table, in the order in which they are to be raised.
// Errors are those of [Catalog.Read].
func Namespaces(ctx context.Context, client awsdb.Client, name string) ([]schema.Namespace, error) {
	t := table{client: client, name: name, loop: awsdb.Goroutines{}}
	var all []schema.Namespace
	for item, err := range t.scan(ctx, schema.QueryNamespaces(name, false)) {
		if err != nil {
			return nil, fmt.Errorf("namespaces of table %s: %w", name, err)
		}
		ns, err := t.namespaceOf(item)
		if err != nil {
			return nil, err
		}
		all = append(all, ns)
	}
	return all, nil
}

// namespaceOf reads a record of the registry by its own key.
func (t *table) namespaceOf(item map[string]types.AttributeValue) (schema.Namespace, error) {
	k, err := schema.ItemKey(t.name, item)
	if err != nil {
		return schema.Namespace{}, err
	}
	return schema.ParseNamespace(t.name, k, item)
}

// RaiseForm brings a namespace to schema.FormNow. From then on each item comes into that form
// by the next exact write that touches it. It may be repeated. Errors wrap those of
// limiter.Store; after one of limiter.ErrUncertain it may have been done.
func RaiseForm(ctx context.Context, client awsdb.Client, table string, ns schema.Namespace) error {
	loop := awsdb.Goroutines{}
	for try := 0; ; {
		_, err := client.UpdateItem(ctx, schema.RaiseForm(table, &ns))
		if err == nil {
			return nil
		}
		if err = awsdb.Translate(err); !awsdb.RetryRead(ctx, loop, &try, err) { // twice is as good as once
			return fmt.Errorf("raising the form of namespace %.100q in table %s: %w", ns.Title(), table, err)
		}
	}
}
