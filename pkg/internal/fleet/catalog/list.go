package catalog

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A list is made in stages, each a query or the read of one record. A page goes on in the
// stage where the page before ended. Queries find keys in an index, which can miss changes of
// the last second; the records are then read with strong consistency.
type stage struct {
	query *dynamodb.QueryInput // nil = the record of ref
	ref   limiter.Ref
}

// ListEntities implements limiter.Directory. An ID of more than 4 KiB stands as it does in
// keys. A change of the last second may be missing.
func (c *Catalog) ListEntities(ctx context.Context, namespace string, f limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return c.list(ctx, namespace, p, func(ns string) []stage {
		if f.Parent != "" {
			return []stage{{query: schema.QueryChildren(c.table.name, ns, f.Parent)}}
		}
		return partitions(c.table.name, ns, schema.Entities)
	}, func(s limiter.Stored) bool { return s.Record.Entity != nil })
}

// ListLimits implements limiter.Directory, as ListEntities does.
func (c *Catalog) ListLimits(ctx context.Context, namespace string, f limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return c.list(ctx, namespace, p, func(ns string) []stage {
		switch {
		case f.Entity != "" && f.Resource != "":
			return []stage{{ref: limiter.EntityLimitsRef(f.Entity, f.Resource)}}
		case f.Entity != "":
			return []stage{{query: schema.QueryEntityLimits(c.table.name, ns, f.Entity)}}
		case f.Resource != "":
			return []stage{{ref: limiter.ResourceLimitsRef(f.Resource)}, {query: schema.QueryCustomLimits(c.table.name, ns, f.Resource)}}
		}
		ofEntities := partitions(c.table.name, ns, schema.EntityLimits)
		if f.Entities {
			return ofEntities
		}
		general := append([]stage{{ref: limiter.SystemLimitsRef()}}, partitions(c.table.name, ns, schema.ResourceLimits)...)
		if f.General {
			return general
		}
		return append(general, ofEntities...)
	}, func(s limiter.Stored) bool { return f.Selects(s.Ref) && s.Record.Stored() })
}

// ListDisabled implements limiter.Directory, as ListEntities does.
func (c *Catalog) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return c.list(ctx, namespace, p, func(ns string) []stage {
		return []stage{{ref: limiter.SystemLimitsRef()}, {query: schema.QueryDisabled(c.table.name, ns)}}
	}, func(s limiter.Stored) bool { return s.Record.Disabled })
}

// lists makes the queries of lists.
type lists struct{ *table }

// Get implements limiter.Directory.
func (c *Catalog) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	found, err := c.registered(ctx, namespace)
	if err != nil || found.ID == "" {
		return limiter.Record{}, err
	}
	stored, err := c.table.readRecords(ctx, found.ID, []limiter.Ref{ref})
	if err != nil {
		return limiter.Record{}, err
	}
	return stored[0].Record, nil
}

// partitions are the queries of all records of a kind.
func partitions(table, ns string, kind schema.RecordKind) []stage {
	all := make([]stage, schema.IndexPartitions)
	for i := range all {
		all[i].query = schema.QueryRecords(table, ns, kind, i)
	}
	return all
}

// list returns a page of the records that the stages find and selects wants.
func (c *Catalog) list(ctx context.Context, namespace string, p limiter.Page, stages func(ns string) []stage, selects func(limiter.Stored) bool) (page limiter.PageOf[limiter.Stored], err error) {
	return inStages(ctx, c, namespace, p, stages, func(ns string, s stage, from map[string]string, size int) ([]limiter.Stored, map[string]string, error) {
		return lists{&c.table}.step(ctx, ns, s, from, size, selects)
	})
}

// inStages returns a page of the items that step finds in stages. It calls step with a key to go
// on from and a number of items. It gets the key where the rest of the stage begins. A namespace
// that is not registered has no items, and stays so.
func inStages[V any](
	ctx context.Context, c *Catalog, namespace string, p limiter.Page, stages func(ns string) []stage,
	step func(ns string, s stage, from map[string]string, size int) ([]V, map[string]string, error),
) (page limiter.PageOf[V], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	at, err := parseCursor(p.After)
	if err != nil {
		return page, err
	}
	found, err := c.registered(ctx, namespace)
	ns := found.ID
	if err != nil || ns == "" {
		return page, err
	}
	all := stages(ns)
	if len(all) == 0 {
		return page, nil
	}
	if err := at.check(ns, all); err != nil {
		return page, err
	}
	for at.Stage < len(all) && len(page.Items) < p.Size {
		items, next, err := step(ns, all[at.Stage], at.Key, p.Size-len(page.Items))
		if err != nil {
			return limiter.PageOf[V]{}, err
		}
		page.Items = append(page.Items, items...)
		at.Key = next
		if next == nil {
			at.Stage++
		}
	}
	if at.Stage < len(all) {
		page.Next = at.String()
	}
	return page, nil
}

// step returns at most size records of a stage from a key on, and the key to go on from, nil
// at its end.
func (t lists) step(ctx context.Context, ns string, s stage, from map[string]string, size int, selects func(limiter.Stored) bool) ([]limiter.Stored, map[string]string, error) {
	if s.query == nil {
		stored, err := t.readRecords(ctx, ns, []limiter.Ref{s.ref})
		if err != nil {
			return nil, nil, err
		}
		found := limiter.Stored{Ref: s.ref, Record: stored[0].Record}
		if found.Record.Empty() || !selects(found) {
			return nil, nil, nil
		}
		return []limiter.Stored{found}, nil, nil
	}
	keys, records, next, err := t.behind(ctx, s, from, size)
	if err != nil {
		return nil, nil, err
	}
	var items []limiter.Stored
	for _, k := range keys {
		stored, err := storedAt(t.name, ns, k, records[k])
		if err != nil {
			return nil, nil, err
		}
		if !stored.Record.Empty() && selects(stored) {
			items = append(items, stored)
		}
	}
	return items, next, nil
}

// storedAt reads the record of a key, an empty one where it is gone.
func storedAt(table, ns string, k schema.Key, item map[string]types.AttributeValue) (limiter.Stored, error) {
	if item == nil {
		return limiter.Stored{}, nil
	}
	ref, err := schema.RefOfItem(table, k, item)
	if err != nil {
		return limiter.Stored{}, err
	}
	stored, err := schema.ParseRecord(table, ns, ref, item)
	return limiter.Stored{Ref: ref, Record: stored.Record}, err
}

// page makes a query once, from a key on.
func (t *table) page(ctx context.Context, q *dynamodb.QueryInput, from map[string]string, size int) ([]map[string]types.AttributeValue, map[string]string, error) {
	in := *q
	in.Limit = aws.Int32(int32(size)) // #nosec G115 -- at most limiter.MaxPage
	if len(from) > 0 {
		in.ExclusiveStartKey = make(map[string]types.AttributeValue, len(from))
		for name, value := range from {
			in.ExclusiveStartKey[name] = &types.AttributeValueMemberS{Value: value}
		}
	}
	for try := 0; ; {
		out, err := t.items.Query(ctx, &in)
		if err != nil {
			if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
				return nil, nil, fmt.Errorf("query of table %s: %w", *q.TableName, err)
			}
			continue
		}
		var next map[string]string
		if len(out.LastEvaluatedKey) > 0 {
			next = make(map[string]string, len(out.LastEvaluatedKey))
			for name, value := range out.LastEvaluatedKey {
				if text, ok := value.(*types.AttributeValueMemberS); ok {
					next[name] = text.Value
				}
			}
		}
		return out.Items, next, nil
	}
}

// cursor is where a page ended. The zero cursor is the beginning.
type cursor struct {
	Stage int               `json:"s"`
	Key   map[string]string `json:"k,omitempty"` // in the stage; empty = its beginning
}

func (c cursor) String() string {
	text, _ := json.Marshal(c) // it cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

var errCursor = fmt.Errorf("%w: the cursor is none of a page of this list", limiter.ErrInvalid)

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return cursor{}, errCursor
	}
	return c, nil
}

// check refuses a cursor that leads out of the namespace or of the stages.
func (c cursor) check(ns string, stages []stage) error {
	if c.Stage < 0 || c.Stage >= len(stages) || len(c.Key) > 0 && stages[c.Stage].query == nil {
		return errCursor
	}
	for name, value := range c.Key {
		known := name == schema.AttrPK || name == schema.AttrSK || strings.HasPrefix(name, "GSI")
		if !known || name == schema.AttrPK && !strings.HasPrefix(value, ns+"/") {
			return errCursor
		}
	}
	return nil
}

// behind returns the keys that a query of an index finds, and their items.
func (t lists) behind(ctx context.Context, s stage, from map[string]string, size int) (keys []schema.Key, items map[schema.Key]map[string]types.AttributeValue, next map[string]string, err error) {
	found, next, err := t.page(ctx, s.query, from, size)
	if err != nil {
		return nil, nil, nil, err
	}
	keys = make([]schema.Key, len(found))
	for i, item := range found {
		if keys[i], err = schema.ItemKey(t.name, item); err != nil {
			return nil, nil, nil, err
		}
	}
	items, err = t.read(ctx, keys)
	return keys, items, next, err
}
