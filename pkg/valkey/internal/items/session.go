package items

import (
	"context"

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

var _ awsdb.Items = (*Session)(nil)

// Write implements awsdb.Items.
func (s *Session) Write(ctx context.Context, of *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	w, err := writeOf(of)
	if err != nil {
		return nil, wrong(err)
	}
	w.answered()
	image, err := s.one(ctx, &w)
	if err != nil {
		return nil, err
	}
	if of.Answer == schema.AnswerUpdated {
		delete(image, schema.AttrPK) // which an update does not change
		delete(image, schema.AttrSK)
	}
	return image, nil
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
			if r.images, _, err = s.fetch(ctx, place, []string{s.db.prefixes[place].item(w.Key.PK, w.Key.SK)}); err != nil {
				return nil, err
			}
		}
		if !r.applied {
			return nil, conditionFailed(r.images[0], w.Shows)
		}
		s.db.usage.know(w, &gains)
		return r.images[0], nil
	}
}

// Transact implements awsdb.Items.
func (s *Session) Transact(ctx context.Context, token string, all []*schema.ItemWrite) error {
	writes, err := writesOf(all)
	if err != nil {
		return wrong(err)
	}
	var r *result
	record, sent := -1, len(writes)
	if len(s.db.prefixes) > 1 {
		writes, record = claimed(writes)
	}
	if parts := s.db.parts(writes); len(parts) > 1 {
		r, err = s.across(ctx, token, writes, parts)
	} else {
		r, err = s.apply(ctx, &batch{place: parts[0].place, writes: writes, token: token}, gains{})
	}
	if err != nil {
		return err
	}
	if r.applied {
		return nil
	}
	if record >= 0 {
		r.held[record] = r.held[record] && r.held[sent]
	}
	canceled := &types.TransactionCanceledException{Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons")}
	for i := range writes[:sent] {
		reason := types.CancellationReason{Code: aws.String("None")}
		if !r.held[i] {
			reason = types.CancellationReason{Code: aws.String(awsdb.ConditionFailed), Message: aws.String(conditionText)}
			if writes[i].Shows {
				reason.Item = r.images[i]
			}
		}
		canceled.CancellationReasons = append(canceled.CancellationReasons, reason)
	}
	return canceled
}

// writesOf returns writes in words.
func writesOf(all []*schema.ItemWrite) ([]write, error) {
	writes := make([]write, len(all))
	for i := range all {
		var err error
		if writes[i], err = writeOf(all[i]); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// BatchWriteItem implements awsdb.Items. All of it that is in one place is applied, or nothing of that is.
func (s *Session) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	for _, requests := range in.RequestItems {
		all := make([]*schema.ItemWrite, len(requests))
		for i, r := range requests {
			if r.PutRequest != nil {
				all[i] = schema.NewPut(r.PutRequest.Item)
			} else {
				all[i] = schema.NewDelete(schema.KeyOf(r.DeleteRequest.Key))
			}
		}
		writes, err := writesOf(all)
		if err != nil {
			return nil, wrong(err)
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

// GetItem implements awsdb.Items.
func (s *Session) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	all, faults, err := s.items(ctx, 1, s.db.spots([]schema.Key{schema.KeyOf(in.Key)}))
	if err == nil {
		err = faults[0]
	}
	if err != nil {
		return nil, err
	}
	return &dynamodb.GetItemOutput{Item: all[0]}, nil
}

// BatchGetItem implements awsdb.Items. An item that cannot be read has its keys alone. No reader takes it for one, and it
// hides no others.
func (s *Session) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}}
	for table := range in.RequestItems {
		wanted := in.RequestItems[table].Keys
		keys := make([]schema.Key, len(wanted))
		for i, k := range wanted {
			keys[i] = schema.KeyOf(k)
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

// DescribeTable implements awsdb.Items. It tells the id of the table, and sends nothing.
func (s *Session) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{
		TableName: &s.db.cfg.Name, TableId: &s.db.at.Load().places[0].table, TableStatus: types.TableStatusActive,
	}}, nil
}
