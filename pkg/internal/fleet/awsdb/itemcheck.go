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

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// item is an item, or the key of one.
type item = map[string]types.AttributeValue

// errOther says that a reply is not that to its call: it holds another item than the one that was
// asked for, or lacks the values that the call set. So the outcome of the call is not known.
var errOther = errors.New("the reply is that to another call")

// other returns the error of a reply to a call for an item.
func other(op string, asked schema.Key, format string, args ...any) error {
	return fmt.Errorf("%s of %s: %w: %s", op, keyText(asked.Attributes()), errOther, fmt.Sprintf(format, args...))
}

// keyText returns the key of an item as messages name it.
func keyText(of item) string {
	text := func(attr string) string {
		if v, ok := of[attr].(*types.AttributeValueMemberS); ok {
			return fmt.Sprintf("%.200q", v.Value)
		}
		return "none"
	}
	return "PK=" + text(schema.AttrPK) + " SK=" + text(schema.AttrSK)
}

// checkKey requires that an item that was found, nil = none, is the one that was asked for.
func checkKey(op string, asked schema.Key, found item) error {
	if len(found) == 0 || schema.KeyOf(found) == asked {
		return nil
	}
	return other(op, asked, "it has the item %s", keyText(found))
}

// checkNoItem requires that a reply has no attributes, which were not asked for.
func checkNoItem(op string, asked schema.Key, found item) error {
	if len(found) == 0 {
		return nil
	}
	return other(op, asked, "it has attributes, and none were asked for")
}

// opOf is how errors name a write.
func opOf(w *schema.ItemWrite) string {
	switch w.Kind {
	case schema.Put:
		return "PutItem"
	case schema.Delete:
		return "DeleteItem"
	case schema.Update:
	}
	return "UpdateItem"
}

// checkWrite requires that the attributes that a write leaves are those of its item, with the values that it set: among
// them is the id of the write.
func checkWrite(w *schema.ItemWrite, got item) error {
	if w.OrUpdate != nil && len(got) > 0 {
		w = w.OrUpdate
	}
	op := opOf(w)
	switch {
	case w.Kind != schema.Update || w.Answer == schema.AnswerNothing:
		return checkNoItem(op, w.Key, got)
	case len(got) == 0 && w.Known != 0:
		return nil
	case len(got) == 0:
		return incomplete(op, "Attributes")
	case w.Answer == schema.AnswerItem && schema.KeyOf(got) != w.Key:
		return other(op, w.Key, "it has the item %s", keyText(got))
	case w.Answer == schema.AnswerUpdated && got[schema.AttrPK] != nil:
		return other(op, w.Key, "it has the whole item %s, and the changed attributes were asked for", keyText(got))
	}
	for i := range w.Changes {
		if c := &w.Changes[i]; c.Kind == schema.Set && !sameValue(got[c.Attr], c.Value) {
			return other(op, w.Key, "the item has not the value of %s that was set", c.Attr)
		}
	}
	return nil
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
			for i < len(asked) && (seen[i] || schema.KeyOf(it) != schema.KeyOf(asked[i])) {
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
func checkReasons(writes []*schema.ItemWrite, reasons []types.CancellationReason) error {
	if len(reasons) != len(writes) {
		return incomplete("TransactWriteItems", "a reason for each item")
	}
	for i := range reasons {
		if err := checkKey("TransactWriteItems", writes[i].Key, reasons[i].Item); err != nil {
			return err
		}
	}
	return nil
}
