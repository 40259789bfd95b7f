package items

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Session answers calls on the table. One of some histories refuses them with [ErrHistory] once there
// is another one in any place. That of no histories follows the servers. It is safe for concurrent use.
type Session struct {
	db *DB
	of uint64 // number of the histories; 0 = whatever histories the servers have
}

var _ awsdb.Client = (*Session)(nil)

// UpdateItem implements awsdb.Client.
func (s *Session) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	w, err := updating(&types.Update{
		Key: in.Key, ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, wrong(err)
	}
	if serial, ok := awsdb.SerialOf(in.ReturnValues); ok {
		w.image = serial
	} else if in.ReturnValues == types.ReturnValueAllNew || in.ReturnValues == types.ReturnValueUpdatedNew {
		w.image = wholeImage
	}
	image, err := s.one(ctx, &w)
	if err != nil {
		return nil, err
	}
	if in.ReturnValues == types.ReturnValueUpdatedNew {
		delete(image, "PK") // which an update does not change
		delete(image, "SK")
	}
	return &dynamodb.UpdateItemOutput{Attributes: image}, nil
}

// PutItem implements awsdb.Client.
func (s *Session) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	w, err := putting(&types.Put{
		Item: in.Item, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, wrong(err)
	}
	if _, err := s.one(ctx, &w); err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{}, nil
}

// DeleteItem implements awsdb.Client.
func (s *Session) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	w, err := deleting(&types.Delete{
		Key: in.Key, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, wrong(err)
	}
	if _, err := s.one(ctx, &w); err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{}, nil
}

// one applies one write, and returns its image.
func (s *Session) one(ctx context.Context, w *write) (attributes, error) {
	place, _ := home(w.itemKey(), len(s.db.prefixes))
	b := &batch{place: place, writes: []write{*w}}
	for known := true; ; known = false {
		gains, err := s.db.usage.of(w, s.db.prefixes[place], known)
		if err != nil {
			return nil, wrong(err)
		}
		r, err := s.apply(ctx, b, gains)
		s.db.usage.changed(&gains)
		if err != nil {
			return nil, err
		}
		if r.incomplete && known {
			continue
		}
		if r.images[0] != nil && isUsage(w.itemKey()) { // with the hours that it does not have yet
			if r.images, _, err = s.fetch(ctx, place, []string{s.db.prefixes[place].item(w.pk, w.sk)}); err != nil {
				return nil, err
			}
		}
		if !r.applied {
			return nil, conditionFailed(r.images[0], w.asked)
		}
		s.db.usage.know(w, &gains)
		return r.images[0], nil
	}
}

// TransactWriteItems implements awsdb.Client.
func (s *Session) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	writes := make([]write, len(in.TransactItems))
	for i := range in.TransactItems {
		var err error
		if writes[i], err = transacting(&in.TransactItems[i]); err != nil {
			return nil, wrong(err)
		}
	}
	var r *result
	var err error
	record, sent := -1, len(writes)
	if len(s.db.prefixes) > 1 {
		writes, record = claimed(writes)
	}
	if parts := s.db.parts(writes); len(parts) > 1 {
		r, err = s.across(ctx, aws.ToString(in.ClientRequestToken), writes, parts)
	} else {
		r, err = s.apply(ctx, &batch{place: parts[0].place, writes: writes, token: aws.ToString(in.ClientRequestToken)}, gains{})
	}
	if err != nil {
		return nil, err
	}
	if r.applied {
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	if record >= 0 {
		r.held[record] = r.held[record] && r.held[sent]
	}
	canceled := &types.TransactionCanceledException{Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons")}
	for i := range writes[:sent] {
		reason := types.CancellationReason{Code: aws.String("None")}
		if !r.held[i] {
			reason = types.CancellationReason{Code: aws.String(awsdb.ConditionFailed), Message: aws.String(conditionText)}
			if writes[i].asked == types.ReturnValuesOnConditionCheckFailureAllOld {
				reason.Item = r.images[i]
			}
		}
		canceled.CancellationReasons = append(canceled.CancellationReasons, reason)
	}
	return nil, canceled
}

// BatchWriteItem implements awsdb.Client. All of it that is in one place is applied, or nothing of that is.
func (s *Session) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	for _, requests := range in.RequestItems {
		writes := make([]write, len(requests))
		for i, r := range requests {
			var err error
			if r.PutRequest != nil {
				writes[i], err = putting(&types.Put{Item: r.PutRequest.Item})
			} else {
				writes[i], err = deleting(&types.Delete{Key: r.DeleteRequest.Key})
			}
			if err != nil {
				return nil, wrong(err)
			}
		}
		for _, p := range s.db.parts(writes) {
			b := &batch{place: p.place}
			for _, i := range p.writes {
				b.writes = append(b.writes, writes[i])
			}
			if _, err := s.apply(ctx, b, gains{}); err != nil {
				return nil, err
			}
		}
	}
	return &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}, nil
}

// GetItem implements awsdb.Client.
func (s *Session) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	all, faults, err := s.items(ctx, 1, s.db.spots([]schema.Key{keyOf(in.Key)}))
	if err == nil {
		err = faults[0]
	}
	if err != nil {
		return nil, err
	}
	return &dynamodb.GetItemOutput{Item: all[0]}, nil
}

// BatchGetItem implements awsdb.Client. An item that cannot be read has its keys alone. No reader takes it for one, and it
// hides no others.
func (s *Session) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}}
	for table := range in.RequestItems {
		wanted := in.RequestItems[table].Keys
		keys := make([]schema.Key, len(wanted))
		for i, k := range wanted {
			keys[i] = keyOf(k)
		}
		all, faults, err := s.items(ctx, len(keys), s.db.spots(keys))
		if err != nil {
			return nil, err
		}
		found := []map[string]types.AttributeValue{}
		for i, it := range all {
			switch {
			case faults[i] != nil:
				found = append(found, wanted[i])
			case it != nil:
				found = append(found, it)
			}
		}
		out.Responses[table] = found
	}
	return out, nil
}

// errNoTable says that no call creates a table of a server.
var errNoTable = errors.New("a server has no tables to create")

// CreateTable implements awsdb.Client: [Open] makes the marker of a table.
func (*Session) CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return nil, wrong(errNoTable)
}

// DescribeTable implements awsdb.Client. It tells the id of the table, and sends nothing.
func (s *Session) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{
		TableName: &s.db.cfg.Name, TableId: &s.db.at.Load().places[0].table, TableStatus: types.TableStatusActive,
	}}, nil
}

// UpdateTimeToLive implements awsdb.Client: items that have expired are swept.
func (*Session) UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return nil, wrong(errNoTable)
}
