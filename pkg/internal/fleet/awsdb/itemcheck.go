package awsdb

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes of the table's key.
const (
	attrPK = "PK"
	attrSK = "SK"
)

// item is an item, or the key of one.
type item = map[string]types.AttributeValue

// errOther says that a reply is not that to its call: it holds another item than the one that was
// asked for, or lacks the values that the call set. So the outcome of the call is not known.
var errOther = errors.New("the reply is that to another call")

// other returns the error of a reply to a call for an item.
func other(op string, asked item, format string, args ...any) error {
	return fmt.Errorf("%s of %s: %w: %s", op, keyText(asked), errOther, fmt.Sprintf(format, args...))
}

// keyText returns the key of an item as messages name it.
func keyText(of item) string {
	text := func(attr string) string {
		if v, ok := of[attr].(*types.AttributeValueMemberS); ok {
			return fmt.Sprintf("%.200q", v.Value)
		}
		return "none"
	}
	return "PK=" + text(attrPK) + " SK=" + text(attrSK)
}

// hasKey reports whether an item has a key. asked is a key, or an item to be put, which includes
// its key.
func hasKey(found, asked item) bool {
	for _, attr := range [...]string{attrPK, attrSK} {
		if want := asked[attr]; want != nil && !sameValue(found[attr], want) {
			return false
		}
	}
	return true
}

// checkKey requires that an item that was found, nil = none, is the one that was asked for.
func checkKey(op string, asked, found item) error {
	if len(found) == 0 || hasKey(found, asked) {
		return nil
	}
	return other(op, asked, "it has the item %s", keyText(found))
}

// checkNoItem requires that a reply has no attributes, which were not asked for.
func checkNoItem(op string, asked, found item) error {
	if len(found) == 0 {
		return nil
	}
	return other(op, asked, "it has attributes, and none were asked for")
}

// checkUpdate requires that the attributes that an update leaves are those of its item, with the
// values that it set: among them is the id of the write.
func checkUpdate(in *dynamodb.UpdateItemInput, got item) error {
	switch {
	case !asksForItem(in.ReturnValues):
		return checkNoItem("UpdateItem", in.Key, got)
	case in.ReturnValues != types.ReturnValueUpdatedNew && !hasKey(got, in.Key):
		return other("UpdateItem", in.Key, "it has the item %s", keyText(got))
	case in.ReturnValues == types.ReturnValueUpdatedNew && got[attrPK] != nil:
		return other("UpdateItem", in.Key, "it has the whole item %s, and the changed attributes were asked for", keyText(got))
	}
	for attr, want := range assignments(in) {
		if !sameValue(got[attr], want) {
			return other("UpdateItem", in.Key, "the item has not the value of %s that was set", attr)
		}
	}
	return nil
}

// assignments yields the attributes that an update sets to a value.
func assignments(in *dynamodb.UpdateItemInput) func(yield func(attr string, v types.AttributeValue) bool) {
	return func(yield func(string, types.AttributeValue) bool) {
		_, sets, _ := strings.Cut(aws.ToString(in.UpdateExpression), "SET ")
		for _, next := range [...]string{" ADD ", " REMOVE ", " DELETE "} {
			sets, _, _ = strings.Cut(sets, next)
		}
		for set := range strings.SplitSeq(sets, ",") {
			name, value, _ := strings.Cut(set, "=")
			attr, v := in.ExpressionAttributeNames[strings.TrimSpace(name)], in.ExpressionAttributeValues[strings.TrimSpace(value)]
			if attr != "" && v != nil && !yield(attr, v) { // else it is set to more than a value
				return
			}
		}
	}
}

// sameValue reports whether an attribute has a value. It compares text, bytes and numbers; other
// values count as equal.
func sameValue(got, want types.AttributeValue) bool {
	switch want := want.(type) {
	case *types.AttributeValueMemberS:
		v, ok := got.(*types.AttributeValueMemberS)
		return ok && v.Value == want.Value
	case *types.AttributeValueMemberB:
		v, ok := got.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(v.Value, want.Value)
	case *types.AttributeValueMemberN:
		v, ok := got.(*types.AttributeValueMemberN)
		return ok && (v.Value == want.Value || sameNumber(v.Value, want.Value))
	}
	return true
}

// sameNumber reports whether two texts are of one number: DynamoDB may write it in another way.
func sameNumber(a, b string) bool {
	const longest = 64 // of a number of DynamoDB
	if len(a) > longest || len(b) > longest || strings.ContainsAny(a+b, "eE/") {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, fine := new(big.Rat).SetString(b)
	return ok && fine && x.Cmp(y) == 0
}

// checkQuery requires that items, and where the next page begins, are of the partition that a
// query is for.
func checkQuery(in *dynamodb.QueryInput, out *dynamodb.QueryOutput) error {
	partition, _, _ := strings.Cut(aws.ToString(in.KeyConditionExpression), " AND ")
	name, value, _ := strings.Cut(partition, "=")
	attr, want := in.ExpressionAttributeNames[strings.TrimSpace(name)], in.ExpressionAttributeValues[strings.TrimSpace(value)]
	if attr == "" || want == nil {
		return nil
	}
	for _, found := range append(slices.Clip(out.Items), out.LastEvaluatedKey) {
		if len(found) > 0 && !sameValue(found[attr], want) {
			return fmt.Errorf("Query: %w: it has the item %s, which is not of the %s asked for", errOther, keyText(found), attr)
		}
	}
	return nil
}

// checkBatch requires for each requested table items, an empty list, or the keys that
// were left over. All of these must have been asked for.
func checkBatch(in *dynamodb.BatchGetItemInput, out *dynamodb.BatchGetItemOutput) error {
	for table := range in.RequestItems {
		asked, left := in.RequestItems[table].Keys, out.UnprocessedKeys[table].Keys
		if out.Responses[table] == nil && len(left) == 0 {
			return incomplete("BatchGetItem", "Responses")
		}
		if err := checkAsked("BatchGetItem", asked, out.Responses[table], left); err != nil {
			return err
		}
	}
	return nil
}

// checkAsked requires that each item of some lists was asked for, and is there once.
func checkAsked(op string, asked []item, lists ...[]item) error {
	seen := make([]bool, len(asked))
	for _, found := range lists {
		for _, it := range found {
			i := 0
			for i < len(asked) && (seen[i] || !hasKey(it, asked[i])) {
				i++
			}
			if i == len(asked) {
				return fmt.Errorf("%s: %w: it has the item %s, which was not asked for, or has it twice", op, errOther, keyText(it))
			}
			seen[i] = true
		}
	}
	return nil
}

// checkBatchWrite requires that the rest of a batch was asked for.
func checkBatchWrite(in *dynamodb.BatchWriteItemInput, out *dynamodb.BatchWriteItemOutput) error {
	if out.UnprocessedItems == nil {
		return incomplete("BatchWriteItem", "UnprocessedItems")
	}
	for table, left := range out.UnprocessedItems {
		if err := checkAsked("BatchWriteItem", writeKeys(in.RequestItems[table]), writeKeys(left)); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys returns the items that a batch is for.
func writeKeys(of []types.WriteRequest) []item {
	keys := make([]item, len(of))
	for i, w := range of {
		switch {
		case w.DeleteRequest != nil:
			keys[i] = w.DeleteRequest.Key
		case w.PutRequest != nil:
			keys[i] = w.PutRequest.Item
		}
	}
	return keys
}

// checkReasons requires that a canceled transaction has a reason for each of its items, and shows
// no other ones.
func checkReasons(in *dynamodb.TransactWriteItemsInput, reasons []types.CancellationReason) error {
	if len(reasons) != len(in.TransactItems) {
		return incomplete("TransactWriteItems", "a reason for each item")
	}
	for i := range reasons {
		if err := checkKey("TransactWriteItems", transactKey(&in.TransactItems[i]), reasons[i].Item); err != nil {
			return err
		}
	}
	return nil
}

// transactKey returns the item that a part of a transaction is for.
func transactKey(t *types.TransactWriteItem) item {
	switch {
	case t.Put != nil:
		return t.Put.Item
	case t.Update != nil:
		return t.Update.Key
	case t.Delete != nil:
		return t.Delete.Key
	case t.ConditionCheck != nil:
		return t.ConditionCheck.Key
	}
	return nil
}
