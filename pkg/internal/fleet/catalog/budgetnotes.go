package catalog

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// noteTimeout bounds each call.
const noteTimeout = 10 * time.Second

// BudgetNotes are the marks of told thresholds in the snapshots of a table. They have the names and the stored
// limits, too, by which a budget is found. It is safe for concurrent use. Create it with [NewBudgetNotes].
type BudgetNotes struct {
	items  awsdb.Items
	table  string
	now    func() time.Time
	stored storedBudgetCache

	mu       sync.Mutex
	names    map[string]string    // of namespaces, by id, as last read
	nameless map[string]time.Time // ids without a name, and until when they are not looked up
}

var _ aggregator.Notes = (*BudgetNotes)(nil)

// NewBudgetNotes returns the notes of a table.
func NewBudgetNotes(items awsdb.Items, table string, now func() time.Time) *BudgetNotes {
	return &BudgetNotes{items: items, table: table, now: now}
}

// Note implements aggregator.Notes by one conditional write.
func (n *BudgetNotes) Note(ctx context.Context, of *aggregator.Snapshot, marks []aggregator.Mark, by string) (done bool, now aggregator.Standing, err error) {
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	ns, usage := of.Bucket.Namespace, schema.UsageOf{Entity: of.Bucket.Entity, Resource: of.Bucket.Resource, Window: of.Window, Start: of.Start}
	image, err := n.items.Write(ctx, schema.NoteTold(ns, &usage, marks, by))
	if item, refused := awsdb.ConditionItem(err); refused {
		if len(item) == 0 { // it has expired, or was purged
			return false, aggregator.Standing{}, nil
		}
		now, err = schema.ParseStanding(n.table, item)
		return false, now, err
	}
	if err != nil {
		return false, now, fmt.Errorf("%s: %w", usage.Key(ns), awsdb.TranslatePatient(err))
	}
	now, err = schema.ParseStanding(n.table, image)
	return true, now, err
}

// NamelessFor is how long the id of a namespace without a readable record is not looked up again.
const NamelessFor = time.Minute

// NamespaceName implements aggregator.Notes. It reads all names where it does not have the one that is asked
// for: a namespace is registered before its first bucket is made. One that is gone, or whose record cannot be read, is
// read again after a minute.
func (n *BudgetNotes) NamespaceName(ctx context.Context, id string) (string, error) {
	n.mu.Lock()
	name, known := n.names[id]
	known = known || n.now().Before(n.nameless[id])
	n.mu.Unlock()
	if known {
		return name, nil
	}
	names, err := n.namespaces(ctx)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	maps.DeleteFunc(n.nameless, func(_ string, until time.Time) bool { return !now.Before(until) })
	if names[id] == "" {
		if n.nameless == nil {
			n.nameless = make(map[string]time.Time)
		}
		n.nameless[id] = now.Add(NamelessFor)
	}
	n.names = names
	return names[id], nil
}

// namespaces reads the names of all namespaces, by id.
func (n *BudgetNotes) namespaces(ctx context.Context) (map[string]string, error) {
	names := make(map[string]string)
	for in := schema.QueryNamespaces(n.table); ; {
		ctx, stop := context.WithTimeout(ctx, noteTimeout)
		out, err := n.items.Query(ctx, in)
		stop()
		if err != nil {
			return nil, fmt.Errorf("namespaces of table %s: %w", n.table, awsdb.TranslatePatient(err))
		}
		for _, item := range out.Items {
			k, keyErr := schema.ItemKey(n.table, item)
			ns, err := schema.ParseNamespace(n.table, k, item)
			if keyErr == nil && err == nil { // else the names of the others are good still
				names[ns.ID] = ns.Title()
			}
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		if len(in.ExclusiveStartKey) == 0 {
			return names, nil
		}
	}
}
