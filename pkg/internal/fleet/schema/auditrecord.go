package schema

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of audit events.
const (
	attrAction    = "action"
	attrDetail    = "detail"
	attrPrincipal = "principal" // absent = none
	attrReason    = "reason"    // absent = none
	attrBefore    = "before"    // the record's own attributes; absent = none, or not recorded
	attrAfter     = "after"
)

// AuditItem returns an audit event as an item that is kept for a time; 0 = limiter.AuditRetention.
func AuditItem(ns string, e *limiter.AuditEvent, retention time.Duration) map[string]types.AttributeValue {
	k := AuditKey(ns, AuditSubject(e.Subject), e.ID)
	if retention <= 0 {
		retention = limiter.AuditRetention
	}
	item := NewRecord(k, AuditIndexes(ns, k), e.Subject)
	item[attrRefKind] = NumberAttribute(int(e.Subject.Kind))
	item[attrAction] = &types.AttributeValueMemberS{Value: e.Action}
	item[attrDetail] = &types.AttributeValueMemberS{Value: e.Detail}
	item[AttrCounter] = NumberAttribute(e.Generation)
	item[attrChangeAt] = NumberAttribute(e.Time.UnixMilli())
	item[AttrTTL] = NumberAttribute(e.Time.Add(retention).Unix())
	if e.Principal != "" {
		item[attrPrincipal] = TextAttribute(e.Principal)
	}
	if e.Reason != "" {
		item[attrReason] = TextAttribute(e.Reason)
	}
	for name, r := range map[string]limiter.Record{attrBefore: e.Before, attrAfter: e.After} {
		if !r.Empty() {
			item[name] = &types.AttributeValueMemberM{Value: nested(e.Subject, r, e.Generation)}
		}
	}
	return item
}

// AuditIndexes returns the index keys of an audit event. One key has all events of a namespace in
// the order of time. It gets one entry a change, and each change writes the one counter of the
// namespace, so it is never the busiest key of the namespace.
func AuditIndexes(ns string, k Key) map[string]string {
	keys := NamespaceIndex(ns, k)
	keys[AttrGSI2PK], keys[AttrGSI2SK] = AuditPK(ns, ""), k.SK
	return keys
}

// QueryAudit finds audit events, the newest first: of a subject, as it stands in keys, or those of
// all subjects by an index. Their ids begin at first, "" = any, and are below before, "" = any.
func QueryAudit(table, ns string, subject *limiter.Ref, first, before string) *dynamodb.QueryInput {
	q := query(table, IndexResources, AttrGSI2PK, AuditPK(ns, ""), "", "")
	q.ExpressionAttributeNames["#sk"] = AttrGSI2SK
	if subject != nil {
		q = query(table, "", AttrPK, AuditPK(ns, AuditSubject(*subject)), "", "")
		q.ExpressionAttributeNames["#sk"] = AttrSK
	}
	q.KeyConditionExpression = aws.String("#pk = :pk AND #sk BETWEEN :first AND :last")
	q.ExpressionAttributeValues[":first"] = &types.AttributeValueMemberS{Value: skAuditPrefix + first}
	q.ExpressionAttributeValues[":last"] = &types.AttributeValueMemberS{Value: skAuditPrefix + lastBefore(before)}
	q.ScanIndexForward = aws.Bool(false)
	return q
}

// QueryAuditBetween finds the audit events of a namespace behind a time and up to another one, the oldest first, by
// an index. Both are Unix ms of years that an id can have.
func QueryAuditBetween(table, ns string, after, upTo int64) *dynamodb.QueryInput {
	q := QueryAudit(table, ns, nil, limiter.AuditID(time.UnixMilli(after+1), 0), "")
	q.ExpressionAttributeValues[":last"] = &types.AttributeValueMemberS{Value: skAuditPrefix + limiter.AuditID(time.UnixMilli(upTo), math.MaxUint64)}
	q.ScanIndexForward = aws.Bool(true)
	return q
}

// lastBefore returns a text that no id below another one is above, and that is below that one.
func lastBefore(id string) string {
	at, generation, err := limiter.ParseAuditID(id)
	switch {
	case err != nil: // "" = none
		return "~" // above any digit
	case generation == 0:
		return strings.TrimSuffix(limiter.AuditID(at, 0), auditZero) // below any id of the time
	}
	return limiter.AuditID(at, generation-1)
}

// auditZero is the generation in the first id of a time.
const auditZero = "0000000000000000"

// EventID returns the id of the audit event of a key.
func EventID(k Key) string { return strings.TrimPrefix(k.SK, skAuditPrefix) }

// AuditOver reports whether the time of an audit event is over. DynamoDB and the sweep of a server
// delete it later.
func AuditOver(item map[string]types.AttributeValue, now time.Time) bool {
	n, ok := item[AttrTTL].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	ttl, err := strconv.ParseInt(n.Value, 10, 64)
	return err == nil && ttl <= now.Unix()
}

// nested returns a record as the attributes of its item, without those of keys. Limits carry
// the generation of the event.
func nested(ref limiter.Ref, r limiter.Record, generation uint64) map[string]types.AttributeValue {
	var item map[string]types.AttributeValue
	switch {
	case r.Entity != nil:
		item = EntityItem("", r)
	case ref.Kind == limiter.RefEntity:
		item = DisabledItem("", ref.Entity, r, generation)
	default:
		item = LimitsItem("", ref, r, generation)
	}
	for _, key := range []string{AttrPK, AttrSK, AttrGSI1PK, AttrGSI1SK, AttrGSI2PK, AttrGSI2SK, AttrGSI3PK, AttrGSI3SK, AttrGSI4PK, AttrGSI4SK} {
		delete(item, key)
	}
	return item
}

// nested reads a record of ref from an attribute; an empty one where there is none.
func (r *Reader) nested(attr string, ref limiter.Ref) limiter.Record {
	value, found := r.Item[attr]
	if !found {
		return limiter.Record{}
	}
	m, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		r.Fail(attr, "is %s; it must be a map", TypeName(value))
		return limiter.Record{}
	}
	stored, err := ParseRecord(r.table, "", ref, m.Value)
	if err != nil {
		r.Fail(attr, "is no record: %v", err)
	}
	return stored.Record
}

// AuditOf returns the namespace's id and the event's id of the key of an audit event.
func AuditOf(k Key) (ns, id string, ok bool) {
	ns, _, inAudit := strings.Cut(k.PK, auditPrefix)
	id, isEvent := strings.CutPrefix(k.SK, skAuditPrefix)
	return ns, id, inAudit && isEvent
}

// ParseAudit reads an audit event.
func ParseAudit(table string, item map[string]types.AttributeValue) (limiter.AuditEvent, error) {
	k, err := ItemKey(table, item)
	if err != nil {
		return limiter.AuditEvent{}, err
	}
	r := NewReader(table, k, item)
	kind := limiter.RefKind(r.Int(attrRefKind, int64(limiter.RefEntity), int64(limiter.RefSystemLimits))) // #nosec G115 -- in range
	e := limiter.AuditEvent{
		ID:         EventID(k),
		Time:       time.UnixMilli(r.Int(attrChangeAt, math.MinInt64, math.MaxInt64)).UTC(),
		Action:     r.Text(attrAction),
		Subject:    limiter.Ref{Kind: kind, Entity: r.optionalText(AttrEntity), Resource: r.optionalText(AttrResource)},
		Generation: r.Uint(AttrCounter, 1),
		Detail:     r.Text(attrDetail),
		Principal:  r.optionalText(attrPrincipal),
		Reason:     r.optionalText(attrReason),
	}
	e.Before, e.After = r.nested(attrBefore, e.Subject), r.nested(attrAfter, e.Subject)
	if r.Fault != nil {
		return limiter.AuditEvent{}, r.Fault
	}
	return e, nil
}

// errNoLine says that a line of JSON cannot have the time of an event.
var errNoLine = errors.New("the event's time is out of the years 0 to 9999")

// ArchivedAudit returns an item as an event for an archive; nil = it has no key of an audit event. One that cannot be
// read has its attributes.
func ArchivedAudit(table string, k Key, item map[string]types.AttributeValue) *aggregator.Expired {
	ns, id, ok := AuditOf(k)
	if !ok {
		return nil
	}
	e := &aggregator.Expired{Namespace: ns}
	e.Event, e.Problem = ParseAudit(table, item)
	if year := e.Event.Time.Year(); e.Problem == nil && (year < 0 || year > 9999) {
		e.Problem = errNoLine
	}
	if e.Problem != nil {
		e.Event = limiter.AuditEvent{ID: id}
		e.Item = plain(item)
	}
	return e
}
