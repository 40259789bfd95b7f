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
	attrAction = "action"
	attrDetail = "detail"
)

// Subjects of audit events that are no entities. No entity's name in a key has '$'.
const (
	SubjectSystem         = "$SYSTEM"
	subjectResourcePrefix = "$RESOURCE:"
)

// AuditSubject returns the subject of the audit events of a record, in the form that it
// has in keys: the entity, the resource, or the system.
func AuditSubject(ref limiter.Ref) string {
	switch ref.Kind {
	case limiter.RefResourceLimits:
		return subjectResourcePrefix + EscapeName(ref.Resource)
	case limiter.RefSystemLimits:
		return SubjectSystem
	case limiter.RefEntity, limiter.RefEntityLimits:
	}
	return EscapeName(ref.Entity)
}

// AuditItem returns an audit event as an item.
func AuditItem(ns string, e *limiter.AuditEvent) map[string]types.AttributeValue {
	k := AuditKey(ns, AuditSubject(e.Subject), e.ID)
	item := NewRecord(k, NamespaceIndex(ns, k), e.Subject)
	item[attrRefKind] = NumberAttribute(int(e.Subject.Kind))
	item[attrAction] = &types.AttributeValueMemberS{Value: e.Action}
	item[attrDetail] = &types.AttributeValueMemberS{Value: e.Detail}
	item[AttrCounter] = NumberAttribute(e.Generation)
	item[attrChangeAt] = NumberAttribute(e.Time.UnixMilli())
	item[AttrTTL] = NumberAttribute(e.Time.Add(limiter.AuditAge).Unix())
	return item
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
	}
	if r.Fault != nil {
		return limiter.AuditEvent{}, r.Fault
	}
	return e, nil
}
