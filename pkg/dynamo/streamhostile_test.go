package dynamo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// hostile are values that no program writes.
func hostile() map[string]types.AttributeValue {
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	return map[string]types.AttributeValue{
		"missing": nil, "null": &types.AttributeValueMemberNULL{Value: true}, "list": &types.AttributeValueMemberL{}, "map": &types.AttributeValueMemberM{},
		"text": &types.AttributeValueMemberS{Value: "x"}, "long": &types.AttributeValueMemberS{Value: strings.Repeat("y/#", 100_000)},
		"negative": number("-1"), "fraction": number("1.5"), "huge": number("1" + strings.Repeat("0", 37)), "beyond": number("18446744073709551615"),
		"most": number("9223372036854775807"), "least": number("-9223372036854775808"), "no number": number("x"), "empty": number(""),
	}
}

// With any content in an image of a record nothing panics, and the records beside it count.
func TestHostileImages(t *testing.T) {
	_, _, sample := opened(t, 3)
	for _, image := range []string{"new", "old", "keys"} {
		for attribute := range images(&sample[1], image) {
			for what, value := range hostile() {
				name := fmt.Sprintf("%s image, %s is %s", image, attribute, what)
				db, s, records := opened(t, 3)
				if value == nil {
					delete(images(&records[1], image), attribute)
				} else {
					images(&records[1], image)[attribute] = value
				}
				spared(t, name, db, s, records)
			}
		}
	}
	for name, spoil := range map[string]func(*types.Record){
		"no body": func(r *types.Record) { r.Dynamodb = nil }, "no images": func(r *types.Record) { r.Dynamodb.NewImage, r.Dynamodb.OldImage = nil, nil },
		"nothing": func(r *types.Record) { *r = types.Record{} }, "an unknown event": func(r *types.Record) { r.EventName = "X" },
		"a nil value": func(r *types.Record) { r.Dynamodb.NewImage["x"] = nil; r.Dynamodb.Keys["PK"] = nil },
	} {
		db, s, records := opened(t, 3)
		spoil(&records[1])
		spared(t, name, db, s, records)
	}
}

// spared writes three records of which the second may be spoiled, and wants the usage of the others.
func spared(t *testing.T, name string, db *dynamofake.DB, s *dynamo.Stream, records []types.Record) {
	t.Helper()
	letters, done, err := flush(t, s, records)
	if err != nil || done.Failed != "" || len(letters) > 1 {
		t.Errorf("%s: %d letters, %+v, %v", name, len(letters), done, err)
		return
	}
	if u, err := snapshot(t, db); err != nil || u.Events < 2 || u.Events+int64(len(letters)) > 3 {
		t.Errorf("%s: %d letters, and the usage %+v, %v; want the other two records in it", name, len(letters), u, err)
	}
}

// images returns one of the three parts of a record.
func images(r *types.Record, which string) map[string]types.AttributeValue {
	switch which {
	case "new":
		return r.Dynamodb.NewImage
	case "old":
		return r.Dynamodb.OldImage
	default:
		return r.Dynamodb.Keys
	}
}
