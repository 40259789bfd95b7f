// Package scripttest has items of DynamoDB answer as those of a server that runs scripts, for tests.
package scripttest

import (
	"context"
	"math/big"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Items returns the items of a table that know [schema.AddAbove] and [schema.ItemWrite.OrUpdate]. They read an item, and
// then write it: no other write may come between.
func Items(of awsdb.Items, table string) awsdb.Items { return items{of, table} }

type items struct {
	awsdb.Items

	table string
}

// Write implements [awsdb.Items].
func (i items) Write(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	if AddsAbove(w) {
		out, err := i.GetItem(ctx, &dynamodb.GetItemInput{TableName: &i.table, Key: w.Key.Attributes(), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		w = settled(w, out.Item)
	}
	image, err := i.Items.Write(ctx, w)
	if _, refused := awsdb.ConditionItem(err); refused && w.OrUpdate != nil {
		return i.Write(ctx, w.OrUpdate)
	}
	return image, err
}

// AddsAbove reports whether an update adds to the greater of a number and a floor.
func AddsAbove(w *schema.ItemWrite) bool {
	return slices.ContainsFunc(w.Changes, func(c schema.Change) bool { return c.Kind == schema.AddAbove })
}

// settled returns an update that sets the sums above floors of an item.
func settled(of *schema.ItemWrite, found map[string]types.AttributeValue) *schema.ItemWrite {
	w := *of
	w.Changes = slices.Clone(of.Changes)
	for i := range w.Changes {
		if c := &w.Changes[i]; c.Kind == schema.AddAbove {
			*c = schema.Change{Kind: schema.Set, Attr: c.Attr, Value: above(found[c.Attr], c.Floor, c.Value)}
		}
	}
	return &w
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
