package dynamotest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestOneServerForAllTests(t *testing.T) {
	first, second := dynamotest.Start(t), dynamotest.Start(t)
	if first.URL != second.URL {
		t.Errorf("two servers: %s and %s", first.URL, second.URL)
	}
	if _, err := first.Client(t).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Error(err)
	}
}

func TestAServerThatRuns(t *testing.T) {
	t.Setenv(dynamotest.URLVariable, "http://127.0.0.1:1")
	if got := dynamotest.Start(t).URL; got != "http://127.0.0.1:1" {
		t.Errorf("the server is %s", got)
	}
}
