package awsdb_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A guard fails calls at once after many in a row had no answer.
func ExampleGuard() {
	db := dynamofake.New()
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.LoseReply} })
	table := "ratelimit"
	guard := awsdb.NewGuard(awsdb.ItemsOf(db, table), awsdb.GuardConfig{Now: time.Now, Loop: awsdb.Goroutines{}})
	for range 20 {
		_, err := guard.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &table})
		if errors.Is(err, awsdb.ErrOutage) {
			fmt.Println("unavailable:", errors.Is(err, limiter.ErrUnavailable))
			break
		}
	}
	fmt.Println("calls that were made:", db.Count("DescribeTable"))
	fmt.Println(guard.State().Condition)
	// Output:
	// unavailable: true
	// calls that were made: 10
	// unavailable
}
