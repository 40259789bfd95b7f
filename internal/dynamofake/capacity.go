package dynamofake

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// units is the capacity that a call consumed: of the table, and of its indexes.
type units struct {
	table   float64
	indexes map[string]float64
}

// kilobytes is how many units a write of an item of some size consumes.
func kilobytes(size int) float64 { return float64(max(1, (size+1023)>>10)) }

// units is the capacity that a write consumes, also one whose condition failed.
func (e effect) units() units {
	u := units{table: kilobytes(max(itemSize(e.old), itemSize(e.now)))}
	if !e.write {
		return u
	}
	for _, x := range e.table.indexes {
		if n := x.units(e.old, e.now); n > 0 {
			if u.indexes == nil {
				u.indexes = map[string]float64{}
			}
			u.indexes[x.name] = n
		}
	}
	return u
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

// total is the sum over the table and its indexes.
func (u units) total() float64 {
	sum := u.table
	for _, n := range u.indexes {
		sum += n
	}
	return sum
}

// add adds the units of another item of the same table, times factor.
func (u *units) add(v units, factor float64) {
	u.table += factor * v.table
	for name, n := range v.indexes {
		if u.indexes == nil {
			u.indexes = map[string]float64{}
		}
		u.indexes[name] += factor * n
	}
}

// consumed is the report of a call, nil when it did not ask.
func (u units) consumed(tableName string, ask types.ReturnConsumedCapacity) *types.ConsumedCapacity {
	if ask != types.ReturnConsumedCapacityTotal && ask != types.ReturnConsumedCapacityIndexes {
		return nil
	}
	c := &types.ConsumedCapacity{TableName: aws.String(tableName), CapacityUnits: aws.Float64(u.total())}
	if ask == types.ReturnConsumedCapacityTotal {
		return c
	}
	c.Table = &types.Capacity{CapacityUnits: aws.Float64(u.table)}
	for name, n := range u.indexes {
		if c.GlobalSecondaryIndexes == nil {
			c.GlobalSecondaryIndexes = map[string]types.Capacity{}
		}
		c.GlobalSecondaryIndexes[name] = types.Capacity{CapacityUnits: aws.Float64(n)}
	}
	return c
}

// bill adds the units of a write to the count of the DB. It counts a write that was
// applied, or whose condition failed.
func (db *DB) bill(e effect, err error, factor float64) {
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed || err == nil {
		db.writeUnits += int64(factor * e.units().total())
	}
}
