package dynamofake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// applied plans, bills and commits one write.
func (db *DB) applied(w *write) (effect, error) {
	e, err := db.planWrite(w)
	db.writeUnits += e.billed(err, 1)
	if err == nil {
		e.commit()
	}
	return e, err
}

// UpdateItem changes an item, or creates it.
func (db *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "UpdateItem", Table: name, Input: in}, func() (r request[dynamodb.UpdateItemOutput], err error) {
		w, err := newWrite(write{table: name, isUpdate: true}, notNil(in.Key), nil, in.ConditionExpression, in.UpdateExpression,
			in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure)
		want, ask := in.ReturnValues, in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.UpdateItemOutput, error) {
			e, err := db.applied(w)
			if err != nil {
				return nil, err
			}
			out := &dynamodb.UpdateItemOutput{ConsumedCapacity: e.units().consumed(name, ask)}
			switch want {
			case types.ReturnValueAllOld:
				out.Attributes = cloneItem(e.old)
			case types.ReturnValueAllNew:
				out.Attributes = cloneItem(e.now)
			case types.ReturnValueUpdatedOld:
				out.Attributes = project(e.old, w.update.names())
			case types.ReturnValueUpdatedNew:
				out.Attributes = project(e.now, w.update.names())
			case types.ReturnValueNone:
			}
			return out, nil
		}
		return r, err
	})
}

// PutItem creates or replaces an item.
func (db *DB) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "PutItem", Table: name, Input: in}, func() (r request[dynamodb.PutItemOutput], err error) {
		want, ask := in.ReturnValues, in.ReturnConsumedCapacity
		if err := oldOrNone(want); err != nil {
			return r, err
		}
		w, err := newWrite(write{table: name}, nil, notNil(in.Item), in.ConditionExpression, nil,
			in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure)
		r.apply = func() (*dynamodb.PutItemOutput, error) {
			e, err := db.applied(w)
			if err != nil {
				return nil, err
			}
			out := &dynamodb.PutItemOutput{ConsumedCapacity: e.units().consumed(name, ask)}
			if want == types.ReturnValueAllOld {
				out.Attributes = cloneItem(e.old)
			}
			return out, nil
		}
		return r, err
	})
}

// DeleteItem deletes an item, if it exists.
func (db *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "DeleteItem", Table: name, Input: in}, func() (r request[dynamodb.DeleteItemOutput], err error) {
		want, ask := in.ReturnValues, in.ReturnConsumedCapacity
		if err := oldOrNone(want); err != nil {
			return r, err
		}
		w, err := newWrite(write{table: name, remove: true}, notNil(in.Key), nil, in.ConditionExpression, nil,
			in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure)
		r.apply = func() (*dynamodb.DeleteItemOutput, error) {
			e, err := db.applied(w)
			if err != nil {
				return nil, err
			}
			out := &dynamodb.DeleteItemOutput{ConsumedCapacity: e.units().consumed(name, ask)}
			if want == types.ReturnValueAllOld {
				out.Attributes = cloneItem(e.old)
			}
			return out, nil
		}
		return r, err
	})
}

// GetItem reads an item. Every read is consistent.
func (db *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "GetItem", Table: name, Input: in}, func() (r request[dynamodb.GetItemOutput], err error) {
		rd, err := newRead(in.ProjectionExpression, in.ExpressionAttributeNames, in.ConsistentRead, in.Key)
		ask := in.ReturnConsumedCapacity
		r.apply = func() (*dynamodb.GetItemOutput, error) {
			t, err := db.table(&name)
			if err != nil {
				return nil, err
			}
			a, err := t.address(rd.keys[0])
			if err != nil {
				return nil, err
			}
			it := t.get(a)
			u := units{table: rd.units(itemSize(it))}
			return &dynamodb.GetItemOutput{Item: cloneItem(it), ConsumedCapacity: u.consumed(name, ask)}, nil
		}
		return r, err
	})
}

// oldOrNone refuses return values that puts and deletes do not have.
func oldOrNone(v types.ReturnValue) error {
	if v != "" && v != types.ReturnValueNone && v != types.ReturnValueAllOld {
		return invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil
}

// notNil returns it, or an empty item for nil, so that an empty item differs from an
// absent one.
func notNil(it item) item {
	if it == nil {
		return item{}
	}
	return it
}

// read is the request of reads from one table.
type read struct {
	keys       []item
	consistent bool
}

func newRead(projection *string, names map[string]string, consistent *bool, keys ...item) (*read, error) {
	if projection != nil {
		return nil, unsupported("ProjectionExpression")
	}
	p, err := newPlaceholders(names, nil)
	if err != nil {
		return nil, err
	}
	r := &read{consistent: aws.ToBool(consistent), keys: make([]item, len(keys))}
	for i, key := range keys {
		if r.keys[i], err = admitItem(key); err != nil {
			return nil, err
		}
	}
	return r, p.done()
}

// units is the capacity that reading a number of bytes consumes.
func (r *read) units(size int) float64 {
	n := float64(max(1, (size+4095)>>12))
	if !r.consistent {
		n /= 2
	}
	return n
}
