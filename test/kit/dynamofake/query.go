package dynamofake

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxPage is how many bytes one query reads.
const maxPage = 1 << 20

// query is a query that was parsed.
type query struct {
	table, index string
	key, filter  condition
	conditions   []condition // the parts of key
	start        item
	limit        int // 0 = none
	backward     bool
	count        bool
	everything   bool // also attributes that the index does not hold
	read
}

// Query reads the items of a partition of a table or an index, in order of the sort
// key. Items of an index that have equal keys come in order of the table's keys.
func (db *DB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return do(ctx, db, Call{Op: "Query", Table: aws.ToString(in.TableName), Input: in}, func() (r request[dynamodb.QueryOutput], err error) {
		q, err := newQuery(in)
		ask := in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.QueryOutput, error) { return db.query(q, ask) }
		return r, err
	})
}

func newQuery(in *dynamodb.QueryInput) (*query, error) {
	q := &query{
		table: aws.ToString(in.TableName), index: aws.ToString(in.IndexName), limit: int(aws.ToInt32(in.Limit)),
		backward: in.ScanIndexForward != nil && !*in.ScanIndexForward, count: in.Select == types.SelectCount,
		everything: in.Select == types.SelectAllAttributes, read: read{consistent: aws.ToBool(in.ConsistentRead)},
	}
	if in.KeyConditionExpression == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	if in.Limit != nil && *in.Limit < 1 {
		return nil, invalid("Limit must be greater than or equal to 1")
	}
	if in.ProjectionExpression != nil {
		return nil, unsupported("ProjectionExpression")
	}
	p, err := newPlaceholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.KeyConditionExpression, in.FilterExpression)
	if err != nil {
		return nil, err
	}
	if q.key, err = p.condition("KeyConditionExpression", in.KeyConditionExpression); err != nil {
		return nil, err
	}
	if q.conditions, err = conjuncts(q.key, nil); err != nil {
		return nil, err
	}
	if q.filter, err = p.condition("FilterExpression", in.FilterExpression); err != nil {
		return nil, err
	}
	if len(in.ExclusiveStartKey) > 0 {
		if q.start, err = admitItem(in.ExclusiveStartKey); err != nil {
			return nil, err
		}
	}
	return q, p.done()
}

// mirrored are the operators with their operands exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// conjuncts splits a key condition, which has no OR, at its ANDs.
func conjuncts(c condition, list []condition) ([]condition, error) {
	switch c := c.(type) {
	case and:
		list, err := conjuncts(c.left, list)
		if err != nil {
			return nil, err
		}
		return conjuncts(c.right, list)
	case comparison:
		if _, valueFirst := c.left.(literal); valueFirst {
			c = comparison{mirrored[c.operator], c.right, c.left}
		}
		return append(list, c), nil
	case between, begins:
		return append(list, c), nil
	}
	return nil, invalid("Invalid operator used in KeyConditionExpression")
}

// keyPart is the attribute of a part of a key condition, and whether its operator is
// =.
func keyPart(c condition) (name string, isEqual bool, err error) {
	var subject operand
	var values []operand
	switch c := c.(type) {
	case comparison:
		if c.operator == "<>" {
			return "", false, invalid("Unsupported operator on KeyCondition: operator: <>")
		}
		subject, values, isEqual = c.left, []operand{c.right}, c.operator == "="
	case between:
		subject, values = c.value, []operand{c.low, c.high}
	case begins:
		subject, values = c.value, []operand{c.prefix}
	}
	a, ok := subject.(attribute)
	for _, v := range values {
		if _, isLiteral := v.(literal); !ok || !isLiteral {
			return "", false, invalid("Invalid KeyConditionExpression: the key must stand on the left, and a value on the right")
		}
	}
	return string(a), isEqual, nil
}

// checkKeys demands one value of the partition key and at most one condition on
// the sort key, with values of their types.
func (q *query) checkKeys(t *table, k keys) error {
	seen := map[string]bool{}
	for _, c := range q.conditions {
		name, isEqual, err := keyPart(c)
		switch {
		case err != nil:
			return err
		case name == k.hash && !isEqual:
			return invalid("Query key condition not supported")
		case name != k.hash && (name != k.sort || k.sort == ""):
			return invalid("Query condition missed key schema element: %s", k.hash)
		case seen[name]:
			return invalid("KeyConditionExpressions must only contain one condition per key")
		}
		seen[name] = true
		if err := keyTypes(c, t.types[name]); err != nil {
			return err
		}
	}
	if !seen[k.hash] {
		return invalid("Query condition missed key schema element: %s", k.hash)
	}
	return nil
}

func keyTypes(c condition, want string) error {
	var values []operand
	switch c := c.(type) {
	case comparison:
		values = []operand{c.right}
	case between:
		values = []operand{c.low, c.high}
	case begins:
		values = []operand{c.prefix}
	}
	for _, v := range values {
		l, ok := v.(literal)
		if !ok || typeOf(l.v) != want {
			return invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		if s, isText := text(l.v); isText && s == "" {
			return invalid("One or more parameter values are not valid. A value specified for a key is an empty string")
		}
	}
	return nil
}

// source is the place where a query reads: the keys that order it, and the image of
// each item there.
func (q *query) source(t *table) (k keys, image func(item) item, err error) {
	if q.index == "" {
		return t.keys, func(it item) item { return it }, nil
	}
	x, err := t.index(&q.index)
	if err != nil {
		return k, nil, err
	}
	if q.consistent {
		return k, nil, invalid("Consistent reads are not supported on global secondary indexes")
	}
	if x.all {
		return x.keys, x.image, nil
	}
	if q.everything {
		return k, nil, invalid("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", x.name)
	}
	for _, name := range attributes(q.filter, nil) {
		if !slices.Contains(x.projected, name) {
			return k, nil, invalid("One or more parameter values were invalid: Secondary index %s does not project one or more attributes: [%s]", x.name, name)
		}
	}
	return x.keys, x.image, nil
}

func (db *DB) query(q *query, ask types.ReturnConsumedCapacity) (*dynamodb.QueryOutput, error) {
	t, err := db.table(&q.table)
	if err != nil {
		return nil, err
	}
	k, image, err := q.source(t)
	if err != nil {
		return nil, err
	}
	if err := q.checkKeys(t, k); err != nil {
		return nil, err
	}
	if err := q.checkFilter(k); err != nil {
		return nil, err
	}
	order := t.order(k, q.backward)
	if q.start != nil {
		if err := q.checkStart(t, k); err != nil {
			return nil, err
		}
	}
	var found []item
	for _, partition := range t.partitions {
		for _, it := range partition {
			it = image(it)
			if it == nil {
				continue
			}
			ok, err := q.key.holds(it)
			if err != nil {
				return nil, err
			}
			if ok && (q.start == nil || order(it, q.start) > 0) {
				found = append(found, it)
			}
		}
	}
	slices.SortFunc(found, order)
	return q.page(t, k, found, ask)
}

// page reads found up to the limits of a page.
func (q *query) page(t *table, k keys, found []item, ask types.ReturnConsumedCapacity) (*dynamodb.QueryOutput, error) {
	out := &dynamodb.QueryOutput{}
	if !q.count {
		out.Items = []item{}
	}
	size := 0
	for _, it := range found {
		size += itemSize(it)
		out.ScannedCount++
		ok, err := q.filter.holds(it)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Count++
			if !q.count {
				out.Items = append(out.Items, cloneItem(it))
			}
		}
		if q.limit > 0 && int(out.ScannedCount) == q.limit || size > maxPage {
			out.LastEvaluatedKey = project(it, append(k.names(), t.keys.names()...))
			break
		}
	}
	u := units{}
	if out.ScannedCount > 0 {
		u.table = q.units(size)
	}
	if q.index != "" {
		u = units{indexes: map[string]float64{q.index: u.table}}
	}
	out.ConsumedCapacity = u.consumed(q.table, ask)
	return out, nil
}

// order orders items by the sort key, then by the keys of the table.
func (t *table) order(k keys, backward bool) func(a, b item) int {
	names := []string{k.sort, t.keys.hash, t.keys.sort}
	return func(a, b item) int {
		for _, name := range names {
			c, ok := compare(a[name], b[name])
			if !ok {
				continue
			}
			if backward {
				c = -c
			}
			if c != 0 {
				return cmp.Compare(c, 0)
			}
		}
		return 0
	}
}

// checkStart refuses a start key that has not exactly the keys of the table and the
// index, or lies outside of the query's range.
func (q *query) checkStart(t *table, k keys) error {
	want := map[string]bool{}
	for _, name := range append(k.names(), t.keys.names()...) {
		want[name] = true
		if typeOf(q.start[name]) != t.types[name] {
			return invalid("The provided starting key is invalid")
		}
	}
	if len(want) != len(q.start) {
		return invalid("The provided starting key is invalid")
	}
	inside, err := q.key.holds(q.start)
	if err == nil && !inside {
		err = invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return err
}

// checkFilter refuses a filter on the key, which belongs into the key condition.
func (q *query) checkFilter(k keys) error {
	for _, name := range attributes(q.filter, nil) {
		if slices.Contains(k.names(), name) {
			return invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
		}
	}
	return nil
}

// attributes appends the names of the attributes that a condition asks about.
func attributes(c condition, list []string) []string {
	var operands []operand
	switch c := c.(type) {
	case and:
		return attributes(c.right, attributes(c.left, list))
	case or:
		return attributes(c.right, attributes(c.left, list))
	case comparison:
		operands = []operand{c.left, c.right}
	case between:
		operands = []operand{c.value, c.low, c.high}
	case exists:
		operands = []operand{c.name}
	case begins:
		operands = []operand{c.value, c.prefix}
	}
	for _, o := range operands {
		if a, ok := o.(attribute); ok {
			list = append(list, string(a))
		}
	}
	return list
}
