package awscmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// LambdaEvent is the payload of a call. Its records are decoded one at a time: one that
// is malformed spoils no other.
type LambdaEvent struct {
	Records []json.RawMessage `json:"Records"`
	ShardID string            `json:"shardId"`
}

// LambdaResponse is the answer to a call.
type LambdaResponse = events.DynamoDBTimeWindowEventResponse

// respond reports the first failure; "" = there is none. Lambda treats an answer without
// a state as a failed call.
func respond(failed string) LambdaResponse {
	r := LambdaResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	r.State = map[string]string{}
	if failed != "" {
		r.BatchItemFailures = append(r.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: failed})
	}
	return r
}

// errUnread says that a record of an event is not in the form of Lambda. It has no text of the
// record: that may be a secret.
var errUnread = errors.New("the record is not in the form of an event of DynamoDB")

// decodeRecord reads a record in the form of Lambda into that of the stream. With an error, the record
// has the sequence number and the keys as far as they are there.
func decodeRecord(raw json.RawMessage) (*types.Record, error) {
	var from events.DynamoDBEventRecord
	if err := json.Unmarshal(raw, &from); err != nil {
		return decodeRecordKeys(raw), errUnread
	}
	r := bareRecord(from.Change.SequenceNumber, from.Change.Keys)
	r.EventName = types.OperationType(from.EventName)
	if at := from.Change.ApproximateCreationDateTime.Time; !at.IsZero() {
		r.Dynamodb.ApproximateCreationDateTime = &at
	}
	r.Dynamodb.OldImage, r.Dynamodb.NewImage = attributes(from.Change.OldImage), attributes(from.Change.NewImage)
	if u := from.UserIdentity; u != nil {
		r.UserIdentity = &types.Identity{Type: &u.Type, PrincipalId: &u.PrincipalID}
	}
	return r, nil
}

// decodeRecordKeys reads the sequence number and the keys of a record that cannot be read.
func decodeRecordKeys(raw json.RawMessage) *types.Record {
	var from struct {
		Change struct {
			SequenceNumber json.RawMessage `json:"SequenceNumber"`
			Keys           json.RawMessage `json:"Keys"`
		} `json:"dynamodb"`
	}
	var sequence string
	var keys map[string]events.DynamoDBAttributeValue
	if json.Unmarshal(raw, &from) == nil {
		_ = json.Unmarshal(from.Change.SequenceNumber, &sequence) // "" where it is none
		_ = json.Unmarshal(from.Change.Keys, &keys)               // nil where they are none
	}
	return bareRecord(sequence, keys)
}

// bareRecord returns a record without images.
func bareRecord(sequence string, keys map[string]events.DynamoDBAttributeValue) *types.Record {
	return &types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: &sequence, Keys: attributes(keys)}}
}

// attributes returns attributes in the form of the stream.
func attributes(from map[string]events.DynamoDBAttributeValue) map[string]types.AttributeValue {
	if len(from) == 0 {
		return nil
	}
	to := make(map[string]types.AttributeValue, len(from))
	for name, v := range from {
		to[name] = attribute(v)
	}
	return to
}

// attribute returns an attribute in the form of the stream.
func attribute(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeMap:
		return &types.AttributeValueMemberM{Value: attributes(v.Map())}
	case events.DataTypeList:
		list := make([]types.AttributeValue, len(v.List()))
		for i, member := range v.List() {
			list[i] = attribute(member)
		}
		return &types.AttributeValueMemberL{Value: list}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	case events.DataTypeNull:
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

// errNoShard says that the event source mapping has no tumbling window.
var errNoShard = errors.New("the event has records and no shardId: set TumblingWindowInSeconds of the event source mapping")

// errSource says that the event source mapping is for something else than the stream of the table.
var errSource = errors.New("the event is not of the table's stream: the event source mapping is for another source")

// checkSource requires that a record is of the stream of a table, as far as it says so. All of an
// event are of one source.
func checkSource(raw json.RawMessage, table string) error {
	var from struct {
		Source string `json:"eventSource"`
		ARN    string `json:"eventSourceARN"`
	}
	_ = json.Unmarshal(raw, &from) // a record in no form becomes a letter, which says so
	_, resource, _ := strings.Cut(from.ARN, ":table/")
	of, _, _ := strings.Cut(resource, "/")
	if from.Source != "" && from.Source != "aws:dynamodb" || from.ARN != "" && table != "" && of != table {
		return fmt.Errorf("%w: it is of %.200q, and the function counts the records of table %s", errSource, cmp.Or(from.ARN, from.Source), table)
	}
	return nil
}
