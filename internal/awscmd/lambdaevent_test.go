package awscmd

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameRecord compares records of the SDK, which have fields that are not exported.
var sameRecord = cmpopts.IgnoreUnexported(
	types.Record{}, types.StreamRecord{}, types.Identity{}, types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberBOOL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberSS{},
	types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{}, types.AttributeValueMemberNULL{},
)

func TestDecodeRecord(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "p"}, "SK": &types.AttributeValueMemberS{Value: "s"}}
	for name, tt := range map[string]struct {
		from string
		want types.Record
		bad  bool
	}{
		"every type": {
			from: `{"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"ApproximateCreationDateTime":1700000000,
				"SequenceNumber":"12","Keys":{"PK":{"S":"p"},"SK":{"S":"s"}},"OldImage":{"s":{"S":""},"n":{"N":"-1.5"},"b":{"B":"AAE="},"o":{"BOOL":true},"z":{"NULL":true},
				"m":{"M":{"l":{"L":[{"N":"1"},{"S":"x"}]}}},"ss":{"SS":["a"]},"ns":{"NS":["1"]},"bs":{"BS":["AA=="]}}}}`,
			want: types.Record{
				EventName: types.OperationTypeRemove, UserIdentity: &types.Identity{Type: new("Service"), PrincipalId: new("dynamodb.amazonaws.com")},
				Dynamodb: &types.StreamRecord{
					ApproximateCreationDateTime: &at, SequenceNumber: new("12"), Keys: key,
					OldImage: map[string]types.AttributeValue{
						"s": &types.AttributeValueMemberS{}, "n": &types.AttributeValueMemberN{Value: "-1.5"}, "b": &types.AttributeValueMemberB{Value: []byte{0, 1}},
						"o": &types.AttributeValueMemberBOOL{Value: true}, "z": &types.AttributeValueMemberNULL{Value: true},
						"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{
							&types.AttributeValueMemberN{Value: "1"}, &types.AttributeValueMemberS{Value: "x"},
						}}}},
						"ss": &types.AttributeValueMemberSS{Value: []string{"a"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
						"bs": &types.AttributeValueMemberBS{Value: [][]byte{{0}}},
					},
				},
			},
		},
		"an unknown type": {
			from: `{"eventName":"INSERT","dynamodb":{"SequenceNumber":"12","Keys":{"PK":{"S":"p"},"SK":{"S":"s"}},"NewImage":{"x":{"Q":"1"}}}}`,
			want: types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: new("12"), Keys: key}}, bad: true,
		},
		"keys of another form": {
			from: `{"dynamodb":{"SequenceNumber":"12","Keys":7}}`,
			want: types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: new("12")}}, bad: true,
		},
		"no object":  {from: `[]`, want: types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: new("")}}, bad: true},
		"no content": {from: `{}`, want: types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: new("")}}},
	} {
		got, err := decodeRecord(json.RawMessage(tt.from))
		if tt.bad != (err != nil) || tt.bad && !errors.Is(err, errUnread) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(&tt.want, got, sameRecord); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A record of any bytes is read or refused.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"eventName":"MODIFY","dynamodb":{"ApproximateCreationDateTime":1.7e9,"SequenceNumber":"1","Keys":{"PK":{"S":"p"}},"NewImage":{"l":{"L":[{"NULL":true}]}}}}`))
	f.Add([]byte(`{"dynamodb":{"Keys":{"PK":{"N":7}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decodeRecord(raw)
		if r == nil || r.Dynamodb == nil || r.Dynamodb.SequenceNumber == nil {
			t.Errorf("%q: %+v, %v", raw, r, err)
		}
	})
}
