package dynamo

import (
	"encoding/json"
	"testing"
	"time"

	table "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// streamed returns an attribute of the table in the form of the stream.
func streamed(v table.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *table.AttributeValueMemberS:
		return str(v.Value)
	case *table.AttributeValueMemberN:
		return num(v.Value)
	case *table.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: streamedItem(v.Value)}
	case *table.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i := range v.Value {
			list[i] = streamed(v.Value[i])
		}
		return &types.AttributeValueMemberL{Value: list}
	case *table.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: v.Value}
	case *table.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

func streamedItem(item map[string]table.AttributeValue) image {
	to := image{}
	for name, v := range item {
		to[name] = streamed(v)
	}
	return to
}

func identity(kind, principal string) *types.Identity {
	return &types.Identity{Type: &kind, PrincipalId: &principal}
}

// An audit event that DynamoDB removes has expired. One that a caller removes has not, and neither
// has another item.
func TestExpiredEvents(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60), limiter.PerDay("tpd", 9))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	event := limiter.AuditEvent{
		ID: limiter.AuditID(at, 7), Time: at, Principal: "ada", Action: limiter.ActionPutLimits, Subject: limiter.EntityLimitsRef("team/a", "gpt-4"),
		Generation: 7, Detail: "rpm: 60/minute", After: limiter.Record{Limits: limits},
	}
	k := schema.AuditKey(ns, schema.AuditSubject(event.Subject), event.ID)
	old := streamedItem(schema.AuditItem(ns, &event, 0))
	s := &Stream{table: "t"}
	by := func(u *types.Identity, event types.OperationType, k schema.Key, old image) *types.Record {
		r := change(event, k, old, nil)
		r.UserIdentity = u
		return r
	}
	dynamodb := identity("Service", "dynamodb.amazonaws.com")
	r := s.Record(by(dynamodb, types.OperationTypeRemove, k, old))
	if r.Problem != nil || !r.Other || r.Expired == nil || r.Expired.Namespace != ns || r.Expired.Problem != nil {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(event, r.Expired.Event, cmp.AllowUnexported(limiter.Limits{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, from := range map[string]*types.Record{
		"by a caller":       by(nil, types.OperationTypeRemove, k, old),
		"by another one":    by(identity("Service", "lambda.amazonaws.com"), types.OperationTypeRemove, k, old),
		"by an impostor":    by(identity("User", "dynamodb.amazonaws.com"), types.OperationTypeRemove, k, old),
		"without a type":    by(&types.Identity{}, types.OperationTypeRemove, k, old),
		"a change":          by(dynamodb, types.OperationTypeModify, k, old),
		"of another record": by(dynamodb, types.OperationTypeRemove, schema.EntityKey(ns, "team/a"), image{"x": str("y")}),
	} {
		if r := s.Record(from); r.Expired != nil || r.Problem != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// An event that this version cannot read is passed on as it was stored.
func TestExpiredEventsOfANewerVersion(t *testing.T) {
	k := schema.AuditKey(ns, "$NEWER:thing", "id-1")
	old := image{
		"PK": str(k.PK), "SK": str(k.SK), "kind": num("99"), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1.50"), &types.AttributeValueMemberBOOL{Value: true}}},
		"ss": &types.AttributeValueMemberSS{Value: []string{"a"}}, "b": &types.AttributeValueMemberB{Value: []byte{1}}, "n": &types.AttributeValueMemberNULL{Value: true},
	}
	from := change(types.OperationTypeRemove, k, old, nil)
	from.UserIdentity = identity("Service", "dynamodb.amazonaws.com")
	e := (&Stream{table: "t"}).Record(from).Expired
	if e == nil || e.Problem == nil || e.Event.ID != "id-1" || e.Namespace != ns {
		t.Fatalf("%+v", e)
	}
	want := map[string]any{"PK": k.PK, "SK": k.SK, "kind": json.Number("99"), "l": []any{json.Number("1.50"), true}, "ss": []string{"a"}, "b": []byte{1}, "n": nil}
	if diff := cmp.Diff(want, e.Item); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An event at a time that no line can have is passed on as it was stored, too.
func TestExpiredEventsOfNoTime(t *testing.T) {
	event := limiter.AuditEvent{ID: "id-1", Action: limiter.ActionPutLimits, Subject: limiter.EntityLimitsRef("team/a", "gpt-4"), Generation: 7, Detail: "x"}
	k := schema.AuditKey(ns, schema.AuditSubject(event.Subject), event.ID)
	for ms, bad := range map[string]bool{"9223372036854775807": true, "-9223372036854775808": true, "253402300800000": true, "253402300799999": false, "0": false} {
		old := streamedItem(schema.AuditItem(ns, &event, 0))
		old["at"] = num(ms)
		from := change(types.OperationTypeRemove, k, old, nil)
		from.UserIdentity = identity("Service", "dynamodb.amazonaws.com")
		e := (&Stream{table: "t"}).Record(from).Expired
		if e == nil || (e.Problem != nil) != bad || (len(e.Item) > 0) != bad {
			t.Errorf("at %s: %+v", ms, e)
		}
	}
}
