package dynamotest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// stub answers every call with nothing.
type stub struct{}

func (stub) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func ExampleRecorder() {
	recorder := dynamotest.NewRecorder(stub{})
	client := dynamotest.NewClient("http://127.0.0.1", recorder)
	_, err := client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String("buckets")})
	fmt.Println(recorder.Take()[0].Op, err)
	// Output: DescribeTable <nil>
}
