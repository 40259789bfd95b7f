package dynamofake_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A write whose reply is lost was applied all the same: sent again, it fails.
func Example() {
	ctx := context.Background()
	db := dynamofake.New()
	if _, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("buckets"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}); err != nil {
		fmt.Println(err)
		return
	}
	take := func() error {
		_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           aws.String("buckets"),
			Key:                                 map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "user-1"}},
			UpdateExpression:                    aws.String("SET #w = :w ADD #tk :take"),
			ConditionExpression:                 aws.String("#w <> :w"),
			ExpressionAttributeNames:            map[string]string{"#w": "lw", "#tk": "tk"},
			ExpressionAttributeValues:           map[string]types.AttributeValue{":w": &types.AttributeValueMemberS{Value: "write-1"}, ":take": &types.AttributeValueMemberN{Value: "-1000"}},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	}
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}))
	fmt.Println(take())

	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](take()); ok {
		fmt.Println("applied by", failed.Item["lw"].(*types.AttributeValueMemberS).Value)
	}
	// Output:
	// operation error DynamoDB: UpdateItem, request send failed, read tcp: connection reset by peer
	// applied by write-1
}
