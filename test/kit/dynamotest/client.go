package dynamotest

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// TableName returns a name that no other test uses.
func TableName(tb testing.TB) string {
	tb.Helper()
	return "test-" + rand.Text()
}

// Client returns a client of the server. It never retries.
func (s *Server) Client(tb testing.TB) *dynamodb.Client {
	tb.Helper()
	transport := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}
	tb.Cleanup(transport.CloseIdleConnections)
	return NewClient(s.URL, transport)
}

// NewClient returns a client of an endpoint that never retries, over a transport
// such as a [Recorder]; nil = http.DefaultTransport.
func NewClient(endpoint string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "local",
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   plainBodies{&http.Client{Transport: transport}},
		Retryer:      aws.NopRetryer{},
		// DynamoDB Local sends no checksum with its errors, which would log a warning.
		DisableValidateResponseChecksum: true,
		Logger:                          logging.Nop{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

// plainBodies prevents the broken connections that bodies of requests cause, as
// dynamo.NewClient does. Without it, reading a long reply fails now and then.
type plainBodies struct{ next *http.Client }

// Do implements aws.HTTPClient.
func (c plainBodies) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return c.next.Do(request) // #nosec G704 -- to the endpoint of the test
}
