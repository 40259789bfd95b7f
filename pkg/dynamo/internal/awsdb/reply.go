package awsdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checksumHeader has the CRC-32 of a reply's body.
const checksumHeader = "X-Amz-Crc32"

// maxReply bounds the body of a reply: 16 MB of items, in the longest form of JSON.
const maxReply = 64 << 20

// strangerError says that an answer without an id and a checksum is not DynamoDB's.
// It comes from something on the way: a proxy, a portal that asks for a login.
type strangerError struct {
	status int
	kind   string // of the content
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("something other than DynamoDB answered, with status %d and content of type %.50q", e.status, e.kind)
}

// genuineClient turns answers that are not DynamoDB's into errors, and those that are not as it
// sent them. It reads each answer whole: the SDK compares checksums when it has used the answer.
type genuineClient struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c genuineClient) Do(request *http.Request) (*http.Response, error) {
	response, err := c.next.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nothing of it is of use
	if !isGenuine(response) {
		return nil, &strangerError{response.StatusCode, response.Header.Get("Content-Type")}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	sum := response.Header.Get(checksumHeader)
	switch {
	case err != nil:
		return nil, err
	case len(body) == maxReply:
		return nil, incomplete("a reply", "an end")
	case sum != "" && sum != strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10):
		return nil, incomplete("a reply", "a body with the checksum "+strconv.Quote(sum[:min(len(sum), 20)]))
	case response.StatusCode == http.StatusOK && !isSuccess(body):
		return nil, incomplete("a reply of status 200", "an object of JSON that is no error")
	}
	whole := *response
	whole.Body = io.NopCloser(bytes.NewReader(body))
	return &whole, nil
}

// isSuccess reports whether a body may be that of a success: of some calls DynamoDB sends an empty
// object, and the SDK takes an empty body and an error for one as well.
func isSuccess(body []byte) bool {
	return bytes.HasPrefix(body, []byte("{")) && !bytes.HasPrefix(body, []byte(`{"__type"`))
}

// isGenuine reports whether an answer has the headers that all of DynamoDB's have, and a status
// that it uses.
func isGenuine(r *http.Response) bool {
	if r.StatusCode > http.StatusOK && r.StatusCode < http.StatusMultipleChoices {
		return false
	}
	if r.Header.Get("X-Amzn-Requestid") != "" || r.Header.Get(checksumHeader) != "" {
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
var errIncomplete = errors.New("the reply lacks a part that DynamoDB always sends")

// incomplete returns the error of a reply without something.
func incomplete(op, missing string) error {
	return fmt.Errorf("%s: %w: %s", op, errIncomplete, missing)
}

// CheckReply returns the failure at the end of a call: its error, or that of a reply that proves
// nothing. Such a reply lacks a part that DynamoDB always sends, or is that to another call. For
// an item that does not exist DynamoDB sends nothing that could be missing.
func CheckReply(in, out any, err error) error {
	if err != nil {
		return checkRefusal(in, err)
	}
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return checkKey("GetItem", in.Key, out.(*dynamodb.GetItemOutput).Item)
	case *dynamodb.UpdateItemInput:
		got := out.(*dynamodb.UpdateItemOutput).Attributes
		if asksForItem(in.ReturnValues) && len(got) == 0 {
			return incomplete("UpdateItem", "Attributes")
		}
		return checkUpdate(in, got)
	case *dynamodb.PutItemInput:
		return checkNoItem("PutItem", in.Item, out.(*dynamodb.PutItemOutput).Attributes)
	case *dynamodb.DeleteItemInput:
		return checkNoItem("DeleteItem", in.Key, out.(*dynamodb.DeleteItemOutput).Attributes)
	case *dynamodb.BatchGetItemInput:
		return checkBatch(in, out.(*dynamodb.BatchGetItemOutput))
	case *dynamodb.BatchWriteItemInput:
		return checkBatchWrite(in, out.(*dynamodb.BatchWriteItemOutput))
	case *dynamodb.QueryInput:
		found := out.(*dynamodb.QueryOutput)
		if in.Select != types.SelectCount && found.Items == nil {
			return incomplete("Query", "Items")
		}
		return checkQuery(in, found)
	case *dynamodb.CreateTableInput:
		if out.(*dynamodb.CreateTableOutput).TableDescription == nil {
			return incomplete("CreateTable", "TableDescription")
		}
	case *dynamodb.DescribeTableInput:
		if out.(*dynamodb.DescribeTableOutput).Table == nil {
			return incomplete("DescribeTable", "Table")
		}
	}
	return nil
}

// asksForItem reports whether an update asks for attributes that it leaves.
func asksForItem(v types.ReturnValue) bool {
	return v == types.ReturnValueAllNew || v == types.ReturnValueUpdatedNew
}

// checkRefusal returns the error of a call, or that its refusal proves nothing: it shows another
// item, or none where a put of a new item asks for the one in the way.
func checkRefusal(in any, err error) error {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		if in, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			return cmp.Or(checkReasons(in, canceled.CancellationReasons), err)
		}
	}
	found, refused := ConditionItem(err)
	if !refused {
		return err
	}
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		if len(found) == 0 && in.ReturnValuesOnConditionCheckFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
			return incomplete("PutItem", "the item that is in the way")
		}
		return cmp.Or(checkKey("PutItem", in.Item, found), err)
	case *dynamodb.UpdateItemInput:
		return cmp.Or(checkKey("UpdateItem", in.Key, found), err)
	case *dynamodb.DeleteItemInput:
		return cmp.Or(checkKey("DeleteItem", in.Key, found), err)
	}
	return err
}
