package fleet_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// defective is a client that leaves a condition out of every write of a bucket, as a
// store with that defect would.
type defective struct {
	dynamo.Client
	suffix, operator string // of the attributes that are not compared, and how
}

// defectOf returns a client with the defect of a name; "" = none.
func defectOf(name string, c dynamo.Client) (dynamo.Client, error) {
	switch name {
	case "":
		return c, nil
	case "tokens that are gone":
		return defective{c, "_v", "<="}, nil
	case "a write that was applied before":
		return defective{c, "", "<>"}, nil
	default:
		return nil, fmt.Errorf("there is no defect %q", name)
	}
}

// UpdateItem implements dynamo.Client. The condition stays in the expression, so that
// all that it names is used, but says nothing.
func (d defective) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	terms := strings.Split(aws.ToString(in.ConditionExpression), " AND ")
	for i, term := range terms {
		name, value, ok := strings.Cut(term, d.operator)
		if ok && strings.HasSuffix(in.ExpressionAttributeNames[name], d.suffix) && strings.HasPrefix(value, ":") {
			terms[i] = "(" + term + " OR attribute_exists(" + name + "))"
		}
	}
	other := *in
	other.ConditionExpression = aws.String(strings.Join(terms, " AND "))
	return d.Client.UpdateItem(ctx, &other, opts...)
}
