package dynamotest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
)

func TestOneServerForAllTests(t *testing.T) {
	first, second := dynamotest.Start(t), dynamotest.Start(t)
	if first != second {
		t.Errorf("two servers: %s and %s", first.URL, second.URL)
	}
	if _, err := first.Client(t).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Error(err)
	}
}
