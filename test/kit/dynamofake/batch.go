package dynamofake

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Most items in one batch.
const (
	maxBatchGet   = 100
	maxBatchWrite = 25
)

// BatchGetItem reads items of any tables. Only a [Partial] fault leaves some out.
func (db *DB) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return do(ctx, db, Call{Op: "BatchGetItem", Input: in}, func() (r request[dynamodb.BatchGetItemOutput], err error) {
		reads := make(map[string]*read, len(in.RequestItems))
		n := 0
		for name, k := range in.RequestItems {
			if reads[name], err = newRead(k.ProjectionExpression, k.ExpressionAttributeNames, k.ConsistentRead, k.Keys...); err != nil {
				return r, err
			}
			n += len(k.Keys)
			if len(k.Keys) == 0 {
				return r, invalid("The list of keys of table %s must not be empty", name)
			}
		}
		if n == 0 || n > maxBatchGet {
			return r, invalid("Too many items requested for the BatchGetItem call: %d, must be 1 to %d", n, maxBatchGet)
		}
		items, ask := maps.Clone(in.RequestItems), in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.BatchGetItemOutput, error) { return db.batchGet(reads, items, ask, n) }
		if n > 1 {
			r.half = func() (*dynamodb.BatchGetItemOutput, error) { return db.batchGet(reads, items, ask, (n+1)/2) }
		}
		return r, nil
	})
}

// batchGet reads the first n keys, by name of the table and order of the request.
func (db *DB) batchGet(reads map[string]*read, items map[string]types.KeysAndAttributes, ask types.ReturnConsumedCapacity, n int) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]item{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}}
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		rd := reads[name]
		t, err := db.table(&name)
		if err != nil {
			return nil, err
		}
		seen := map[address]bool{}
		u := units{}
		out.Responses[name] = []item{}
		for i, key := range rd.keys {
			a, err := t.address(key)
			switch {
			case err != nil:
				return nil, err
			case seen[a]:
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[a] = true
			if n == 0 {
				left := items[name]
				left.Keys = cloneItems(rd.keys[i:])
				out.UnprocessedKeys[name] = left
				break
			}
			n--
			it := t.get(a)
			u.table += rd.units(itemSize(it))
			if it != nil {
				out.Responses[name] = append(out.Responses[name], cloneItem(it))
			}
		}
		if c := u.consumed(name, ask); c != nil {
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out, nil
}

func cloneItems(items []item) []item {
	out := make([]item, len(items))
	for i, it := range items {
		out[i] = cloneItem(it)
	}
	return out
}

// BatchWriteItem puts and deletes items. Only a [Partial] fault leaves some out.
func (db *DB) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return do(ctx, db, Call{Op: "BatchWriteItem", Input: in}, func() (r request[dynamodb.BatchWriteItemOutput], err error) {
		var writes []*write
		var requests []types.WriteRequest
		for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
			for _, q := range in.RequestItems[name] {
				w, err := newBatchWrite(name, q)
				if err != nil {
					return r, err
				}
				writes, requests = append(writes, w), append(requests, copyRequest(w))
			}
		}
		if n := len(writes); n == 0 || n > maxBatchWrite {
			return r, invalid("Too many items requested for the BatchWriteItem call: %d, must be 1 to %d", n, maxBatchWrite)
		}
		ask := in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.BatchWriteItemOutput, error) {
			return db.batchWrite(writes, requests, ask, len(writes))
		}
		if len(writes) > 1 {
			r.half = func() (*dynamodb.BatchWriteItemOutput, error) {
				return db.batchWrite(writes, requests, ask, (len(writes)+1)/2)
			}
		}
		return r, nil
	})
}

func newBatchWrite(tableName string, q types.WriteRequest) (*write, error) {
	switch {
	case (q.PutRequest == nil) == (q.DeleteRequest == nil):
		return nil, invalid("Supplied WriteRequest must contain exactly one of PutRequest and DeleteRequest")
	case q.PutRequest != nil:
		return newWrite(write{table: tableName}, nil, notNil(q.PutRequest.Item), nil, nil, nil, nil, "")
	}
	return newWrite(write{table: tableName, remove: true}, notNil(q.DeleteRequest.Key), nil, nil, nil, nil, nil, "")
}

func copyRequest(w *write) types.WriteRequest {
	if w.put != nil {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: cloneItem(w.put)}}
	}
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: cloneItem(w.key)}}
}

// batchWrite applies the first n writes, when all are valid.
func (db *DB) batchWrite(writes []*write, requests []types.WriteRequest, ask types.ReturnConsumedCapacity, n int) (*dynamodb.BatchWriteItemOutput, error) {
	type target struct {
		table *table
		at    address
	}
	seen := map[target]bool{}
	effects := make([]effect, len(writes))
	for i, w := range writes {
		e, err := db.planWrite(w)
		if err != nil {
			return nil, err
		}
		if seen[target{e.table, e.at}] {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
		seen[target{e.table, e.at}] = true
		effects[i] = e
	}
	out := &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}
	used := map[string]*units{}
	for i, e := range effects {
		name := writes[i].table
		if i >= n {
			out.UnprocessedItems[name] = append(out.UnprocessedItems[name], requests[i])
			continue
		}
		if used[name] == nil {
			used[name] = &units{}
		}
		used[name].add(e.units(), 1)
		db.writeUnits += e.billed(nil, 1)
		e.commit()
	}
	out.ConsumedCapacity = report(used, ask)
	return out, nil
}

// report lists the capacity that each table of a call consumed, by name.
func report(used map[string]*units, ask types.ReturnConsumedCapacity) []types.ConsumedCapacity {
	var list []types.ConsumedCapacity
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if c := used[name].consumed(name, ask); c != nil {
			list = append(list, *c)
		}
	}
	return list
}
