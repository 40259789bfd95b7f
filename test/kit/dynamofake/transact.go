package dynamofake

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	maxTransaction = 100
	// A write in a transaction consumes this many times the capacity of the write
	// alone.
	transactionFactor = 2
)

// TransactWriteItems applies all writes or none. A ClientRequestToken that was
// committed before applies nothing again; tokens are kept for ever.
func (db *DB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, db, Call{Op: "TransactWriteItems", Input: in}, func() (r request[dynamodb.TransactWriteItemsOutput], err error) {
		if n := len(in.TransactItems); n == 0 || n > maxTransaction {
			return r, invalid("Member must have length less than or equal to %d and greater than 0: transactItems has %d", maxTransaction, n)
		}
		writes := make([]*write, len(in.TransactItems))
		for i, ti := range in.TransactItems {
			if writes[i], err = newTransactWrite(ti); err != nil {
				return r, err
			}
		}
		body, err := json.Marshal(in.TransactItems)
		token, ask := aws.ToString(in.ClientRequestToken), in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.TransactWriteItemsOutput, error) {
			if use, ok := db.tokens[token]; ok && token != "" {
				if use.body != string(body) {
					return nil, &types.IdempotentParameterMismatchException{Message: aws.String("Idempotent parameter mismatch")}
				}
				return use.out, nil
			}
			out, err := db.transact(writes, ask)
			if err == nil && token != "" {
				if db.tokens == nil {
					db.tokens = map[string]tokenUse{}
				}
				db.tokens[token] = tokenUse{string(body), out}
			}
			return out, err
		}
		return r, err
	})
}

func newTransactWrite(ti types.TransactWriteItem) (*write, error) {
	given := 0
	for _, is := range []bool{ti.Update != nil, ti.Put != nil, ti.Delete != nil, ti.ConditionCheck != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	switch {
	case ti.Update != nil:
		u := ti.Update
		return newWrite(write{table: aws.ToString(u.TableName), isUpdate: true}, notNil(u.Key), nil, u.ConditionExpression, u.UpdateExpression,
			u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure)
	case ti.Put != nil:
		p := ti.Put
		return newWrite(write{table: aws.ToString(p.TableName)}, nil, notNil(p.Item), p.ConditionExpression, nil,
			p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure)
	case ti.Delete != nil:
		d := ti.Delete
		return newWrite(write{table: aws.ToString(d.TableName), remove: true}, notNil(d.Key), nil, d.ConditionExpression, nil,
			d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure)
	}
	c := ti.ConditionCheck
	return newWrite(write{table: aws.ToString(c.TableName)}, notNil(c.Key), nil, c.ConditionExpression, nil,
		c.ExpressionAttributeNames, c.ExpressionAttributeValues, c.ReturnValuesOnConditionCheckFailure)
}

// transact applies all writes or none.
func (db *DB) transact(writes []*write, ask types.ReturnConsumedCapacity) (*dynamodb.TransactWriteItemsOutput, error) {
	type target struct {
		table *table
		at    address
	}
	effects := make([]effect, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	seen := map[target]bool{}
	failed := false
	for i, w := range writes {
		e, err := db.planWrite(w)
		if e.table == nil {
			return nil, err
		}
		at := target{e.table, e.at}
		if seen[at] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[at] = true
		effects[i] = e
		reasons[i] = reason(err)
		failed = failed || err != nil
	}
	used := map[string]*units{}
	for i, e := range effects {
		db.writeUnits += e.billed(nil, transactionFactor)
		if used[writes[i].table] == nil {
			used[writes[i].table] = &units{}
		}
		used[writes[i].table].add(e.units(), transactionFactor)
	}
	if failed {
		return nil, cancelledBy(reasons)
	}
	for _, e := range effects {
		e.commit()
	}
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: report(used, ask)}, nil
}

// reason is why a write of a transaction cannot be applied.
func reason(err error) types.CancellationReason {
	if err == nil {
		return types.CancellationReason{Code: aws.String("None")}
	}
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Message: failed.Message, Item: failed.Item}
	}
	message := err.Error()
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		message = api.ErrorMessage()
	}
	return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(message)}
}
