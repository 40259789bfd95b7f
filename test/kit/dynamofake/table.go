package dynamofake

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table is a table and its items, by partition and sort key.
type table struct {
	description types.TableDescription
	keys        keys
	types       map[string]string // of key attributes
	indexes     []*index
	ttl         string // attribute, "" = off
	partitions  map[string]map[string]item
}

// index is a global secondary index; it is computed from the table when it is read.
type index struct {
	name      string
	keys      keys
	all       bool
	projected []string // when not all: every attribute that it holds
}

// image is the part of an item that the index holds, nil if none.
func (x *index) image(it item) item {
	if it == nil {
		return nil
	}
	for _, name := range x.keys.names() {
		if it[name] == nil {
			return nil
		}
	}
	if x.all {
		return it
	}
	out := make(item, len(x.projected))
	for _, name := range x.projected {
		if v, ok := it[name]; ok {
			out[name] = v
		}
	}
	return out
}

func newKeys(schema []types.KeySchemaElement) (k keys) {
	for _, e := range schema {
		if e.KeyType == types.KeyTypeHash {
			k.hash = aws.ToString(e.AttributeName)
		} else {
			k.sort = aws.ToString(e.AttributeName)
		}
	}
	return k
}

// newTable reads the definition of a table.
func newTable(in *dynamodb.CreateTableInput) (*table, error) {
	t := &table{keys: newKeys(in.KeySchema), types: map[string]string{}, partitions: map[string]map[string]item{}}
	name := aws.ToString(in.TableName)
	if len(name) < 3 || t.keys.hash == "" {
		return nil, invalid("a table needs a name of 3 characters or more and a partition key")
	}
	for _, d := range in.AttributeDefinitions {
		t.types[aws.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	used := map[string]bool{}
	descriptions := make([]types.GlobalSecondaryIndexDescription, 0, len(in.GlobalSecondaryIndexes))
	for _, g := range in.GlobalSecondaryIndexes {
		x := newIndex(g, t.keys)
		t.indexes = append(t.indexes, x)
		for _, key := range x.keys.names() {
			used[key] = true
		}
		descriptions = append(descriptions, types.GlobalSecondaryIndexDescription{
			IndexName: g.IndexName, KeySchema: g.KeySchema, Projection: g.Projection, IndexStatus: types.IndexStatusActive,
		})
	}
	for _, key := range t.keys.names() {
		used[key] = true
	}
	for key := range used {
		if t.types[key] == "" {
			return nil, invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s]", key)
		}
	}
	if len(used) != len(t.types) {
		return nil, invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	t.description = types.TableDescription{
		TableName: in.TableName, TableStatus: types.TableStatusActive, KeySchema: in.KeySchema,
		AttributeDefinitions: in.AttributeDefinitions, GlobalSecondaryIndexes: descriptions,
		StreamSpecification: in.StreamSpecification, BillingModeSummary: &types.BillingModeSummary{BillingMode: in.BillingMode},
		TableArn: aws.String("arn:aws:dynamodb:ddblocal:000000000000:table/" + name),
	}
	return t, nil
}

func newIndex(g types.GlobalSecondaryIndex, of keys) *index {
	x := &index{name: aws.ToString(g.IndexName), keys: newKeys(g.KeySchema)}
	if g.Projection != nil {
		x.all = g.Projection.ProjectionType == types.ProjectionTypeAll
		x.projected = append(x.projected, g.Projection.NonKeyAttributes...)
	}
	x.projected = append(append(x.projected, x.keys.names()...), of.names()...)
	return x
}

// index finds an index.
func (t *table) index(name *string) (*index, error) {
	i := slices.IndexFunc(t.indexes, func(x *index) bool { return x.name == aws.ToString(name) })
	if i < 0 {
		return nil, invalid("The table does not have the specified index: %s", aws.ToString(name))
	}
	return t.indexes[i], nil
}

// get returns the item at an address, nil if there is none.
func (t *table) get(a address) item { return t.partitions[a.hash][a.sort] }

// set puts an item at an address; nil deletes.
func (t *table) set(a address, it item) {
	partition := t.partitions[a.hash]
	if it == nil {
		if delete(partition, a.sort); len(partition) == 0 {
			delete(t.partitions, a.hash)
		}
		return
	}
	if partition == nil {
		partition = map[string]item{}
		t.partitions[a.hash] = partition
	}
	partition[a.sort] = it
}

// describe returns the description, with the number of items of this moment.
func (t *table) describe() *types.TableDescription {
	d := t.description
	n := int64(0)
	for _, p := range t.partitions {
		n += int64(len(p))
	}
	d.ItemCount = &n
	return &d
}

// units is the capacity that a change of an item costs in the index. A change that
// leaves the item's image there as it is costs nothing. An image that moves costs
// twice.
func (x *index) units(old, now item) float64 {
	before, after := x.image(old), x.image(now)
	switch {
	case before == nil && after == nil:
		return 0
	case before == nil:
		return kilobytes(itemSize(after))
	case after == nil:
		return kilobytes(itemSize(before))
	}
	for _, key := range x.keys.names() {
		if !equal(before[key], after[key]) {
			return kilobytes(itemSize(before)) + kilobytes(itemSize(after))
		}
	}
	if equal(&types.AttributeValueMemberM{Value: before}, &types.AttributeValueMemberM{Value: after}) {
		return 0
	}
	return kilobytes(max(itemSize(before), itemSize(after)))
}
