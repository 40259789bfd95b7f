package awsdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxReply bounds the body of a reply: 16 MB of items, in the longest form of JSON.
const maxReply = 64 << 20

// strangerError says that an answer is not DynamoDB's, which gives each an id or a
// checksum, but that of something on the way: a proxy, a portal that asks for a login.
type strangerError struct {
	status int
	kind   string // of the content
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("something other than DynamoDB answered, with status %d and content of type %.50q", e.status, e.kind)
}

// genuineClient turns answers that are not DynamoDB's into errors, and cuts those off
// that are longer than any of its.
type genuineClient struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c genuineClient) Do(request *http.Request) (*http.Response, error) {
	response, err := c.next.Do(request)
	if err != nil {
		return nil, err
	}
	if !isGenuine(response) {
		_ = response.Body.Close() // nothing of it is of use
		return nil, &strangerError{response.StatusCode, response.Header.Get("Content-Type")}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxReply), response.Body}
	return response, nil
}

// isGenuine reports whether an answer has the headers that all of DynamoDB's have.
func isGenuine(r *http.Response) bool {
	if r.Header.Get("X-Amzn-Requestid") != "" || r.Header.Get("X-Amz-Crc32") != "" {
		return true
	}
	return r.StatusCode >= 300 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json")
}

// credentialsError says that there are no credentials to sign a call with: it was not
// sent. An answer of their source says nothing about DynamoDB.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "no credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// markedCredentials marks the errors of a source of credentials.
type markedCredentials struct{ next aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (m markedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := m.next.Retrieve(ctx)
	if err != nil {
		return c, &credentialsError{err}
	}
	return c, nil
}

// errIncomplete says that a reply lacks parts that DynamoDB always sends. So the
// outcome of the call is not known.
var errIncomplete = errors.New("the reply lacks what DynamoDB always sends")

// incomplete returns the error of a reply without something.
func incomplete(op, missing string) error {
	return fmt.Errorf("%s: %w: %s", op, errIncomplete, missing)
}

// CheckReply returns the failure at the end of a call: its error, or that of a
// reply that proves nothing. Of PutItem, DeleteItem, TransactWriteItems and of an item
// that does not exist DynamoDB sends nothing that could be missing.
func CheckReply(in, out any, err error) error {
	if err != nil {
		return checkRefusal(in, err)
	}
	switch out := out.(type) {
	case *dynamodb.UpdateItemOutput:
		if in, ok := in.(*dynamodb.UpdateItemInput); ok && asksForItem(in.ReturnValues) && len(out.Attributes) == 0 {
			return incomplete("UpdateItem", "Attributes")
		}
	case *dynamodb.BatchGetItemOutput:
		if in, ok := in.(*dynamodb.BatchGetItemInput); ok {
			return checkBatch(in, out)
		}
	case *dynamodb.BatchWriteItemOutput:
		if out.UnprocessedItems == nil {
			return incomplete("BatchWriteItem", "UnprocessedItems")
		}
	case *dynamodb.QueryOutput:
		if in, ok := in.(*dynamodb.QueryInput); ok && in.Select != types.SelectCount && out.Items == nil {
			return incomplete("Query", "Items")
		}
	case *dynamodb.CreateTableOutput:
		if out.TableDescription == nil {
			return incomplete("CreateTable", "TableDescription")
		}
	case *dynamodb.DescribeTableOutput:
		if out.Table == nil {
			return incomplete("DescribeTable", "Table")
		}
	}
	return nil
}

// asksForItem reports whether an update asks for attributes that it leaves.
func asksForItem(v types.ReturnValue) bool {
	return v == types.ReturnValueAllNew || v == types.ReturnValueUpdatedNew
}

// checkBatch demands for each table that was asked for items, or a list of none, or
// the keys that were left over.
func checkBatch(in *dynamodb.BatchGetItemInput, out *dynamodb.BatchGetItemOutput) error {
	for table := range in.RequestItems {
		if out.Responses[table] == nil && len(out.UnprocessedKeys[table].Keys) == 0 {
			return incomplete("BatchGetItem", "Responses")
		}
	}
	return nil
}

// checkRefusal returns the error of a call, or that its refusal proves nothing: a put
// that is for a key without an item is refused because of one, which it asks for.
func checkRefusal(in any, err error) error {
	put, ok := in.(*dynamodb.PutItemInput)
	if !ok || put.ReturnValuesOnConditionCheckFailure != types.ReturnValuesOnConditionCheckFailureAllOld {
		return err
	}
	if found, refused := ConditionItem(err); refused && len(found) == 0 {
		return incomplete("PutItem", "the item that is in the way")
	}
	return err
}
