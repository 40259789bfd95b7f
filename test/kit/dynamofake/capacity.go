package dynamofake

import (
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
