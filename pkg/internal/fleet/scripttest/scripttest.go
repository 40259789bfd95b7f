// Package scripttest has items of DynamoDB answer as a server that runs scripts, for tests.
package scripttest

import (
	"context"
	"math/big"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// OrUpdate applies the other write of a put, see [schema.ItemWrite], to the item that refused the put. No other write
// may come between. It returns the item afterwards.
func OrUpdate(ctx context.Context, to awsdb.Items, put *schema.ItemWrite, found map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	w := *put.OrUpdate
	w.Changes = slices.Clone(w.Changes)
	for i := range w.Changes {
		if c := &w.Changes[i]; c.Kind == schema.AddAbove {
			*c = schema.Change{Kind: schema.Set, Attr: c.Attr, Value: above(found[c.Attr], c.Floor, c.Value)}
		}
	}
	return to.Write(ctx, &w)
}

// above adds to the greater of two numbers, the first of which may be absent.
func above(v, floor, n types.AttributeValue) types.AttributeValue {
	sum := number(floor)
	if v != nil && number(v).Cmp(sum) > 0 {
		sum = number(v)
	}
	return &types.AttributeValueMemberN{Value: sum.Add(sum, number(n)).String()}
}

// number returns a number of an item, 0 for another value.
func number(v types.AttributeValue) *big.Int {
	n := new(big.Int)
	if v, ok := v.(*types.AttributeValueMemberN); ok {
		n.SetString(v.Value, 10)
	}
	return n
}
