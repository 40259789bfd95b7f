package awsdb

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// strangerError says that an answer without an id and a checksum is not DynamoDB's.
// It comes from something on the way: a proxy, a portal that asks for a login.
type strangerError struct {
	status int
	kind   string // of the content
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("something other than DynamoDB answered, with status %d and content of type %.50q", e.status, e.kind)
}

// credentialsError says that there are no credentials to sign a call with: it was not
// sent. An answer of their source says nothing about DynamoDB.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "no credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// errIncomplete says that a reply lacks parts that DynamoDB always sends. So the
// outcome of the call is not known.
var errIncomplete = errors.New("the reply lacks a part that the store always sends")

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
		return checkKey("GetItem", schema.KeyOf(in.Key), out.(*dynamodb.GetItemOutput).Item)
	case *schema.ItemWrite:
		return checkWrite(in, out.(item))
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

// checkRefusal returns the error of a call, or that its refusal proves nothing: it shows another
// item, or none where a put of a new item asks for the one in the way.
func checkRefusal(in any, err error) error {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		if writes, ok := in.([]*schema.ItemWrite); ok {
			return cmp.Or(checkReasons(writes, canceled.CancellationReasons), err)
		}
	}
	found, refused := ConditionItem(err)
	w, ok := in.(*schema.ItemWrite)
	if !refused || !ok {
		return err
	}
	if len(found) == 0 && w.Kind == schema.Put && w.Shows {
		return incomplete(opOf(w), "the item that is in the way")
	}
	return cmp.Or(checkKey(opOf(w), w.Key, found), err)
}
