package schema

import (
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of audit events.
const (
	attrAction    = "action"
	attrDetail    = "detail"
	attrPrincipal = "principal" // absent = none
	attrBefore    = "before"    // the record's own attributes; absent = none, or not recorded
	attrAfter     = "after"
)

// AuditItem returns an audit event as an item that is kept for a time; 0 = limiter.AuditRetention.
func AuditItem(ns string, e *limiter.AuditEvent, retention time.Duration) map[string]types.AttributeValue {
	k := AuditKey(ns, AuditSubject(e.Subject), e.ID)
	if retention <= 0 {
		retention = limiter.AuditRetention
	}
	item := NewRecord(k, NamespaceIndex(ns, k), e.Subject)
	item[attrRefKind] = NumberAttribute(int(e.Subject.Kind))
	item[attrAction] = &types.AttributeValueMemberS{Value: e.Action}
	item[attrDetail] = &types.AttributeValueMemberS{Value: e.Detail}
	item[AttrCounter] = NumberAttribute(e.Generation)
	item[attrChangeAt] = NumberAttribute(e.Time.UnixMilli())
	item[AttrTTL] = NumberAttribute(e.Time.Add(retention).Unix())
	if e.Principal != "" {
		item[attrPrincipal] = TextAttribute(e.Principal)
	}
	for name, r := range map[string]limiter.Record{attrBefore: e.Before, attrAfter: e.After} {
		if !r.Empty() {
			item[name] = &types.AttributeValueMemberM{Value: nested(e.Subject, r, e.Generation)}
		}
	}
	return item
}

// nested returns a record as the attributes of its item, without those of keys. Limits carry
// the generation of the event.
func nested(ref limiter.Ref, r limiter.Record, generation uint64) map[string]types.AttributeValue {
	var item map[string]types.AttributeValue
	switch {
	case r.Entity != nil:
		item = EntityItem("", r)
	case ref.Kind == limiter.RefEntity:
		item = DisabledItem("", ref.Entity, generation)
	default:
		item = LimitsItem("", ref, r, generation)
	}
	for _, key := range []string{AttrPK, AttrSK, AttrGSI1PK, AttrGSI1SK, AttrGSI3PK, AttrGSI3SK, AttrGSI4PK, AttrGSI4SK} {
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
		ID:         strings.TrimPrefix(k.SK, skAuditPrefix),
		Time:       time.UnixMilli(r.Int(attrChangeAt, math.MinInt64, math.MaxInt64)).UTC(),
		Action:     r.Text(attrAction),
		Subject:    limiter.Ref{Kind: kind, Entity: r.optionalText(AttrEntity), Resource: r.optionalText(AttrResource)},
		Generation: r.Uint(AttrCounter, 1),
		Detail:     r.Text(attrDetail),
		Principal:  r.optionalText(attrPrincipal),
	}
	e.Before, e.After = r.nested(attrBefore, e.Subject), r.nested(attrAfter, e.Subject)
	if r.Fault != nil {
		return limiter.AuditEvent{}, r.Fault
	}
	return e, nil
}
