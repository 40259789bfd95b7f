package schema

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of a record whose subject is disabled.
const (
	attrDisabled       = "disabled"        // true; absent = no
	attrDisabledAt     = "disabled_at"     // since when, Unix ms; absent = not recorded, and neither are the others
	attrDisabledBy     = "disabled_by"     // principal; absent = none
	attrDisabledReason = "disabled_reason" // absent = none
)

// DisabledItem returns the record of an entity that was never stored, or was deleted, and is
// disabled.
func DisabledItem(ns, entity string, rec limiter.Record, generation uint64) map[string]types.AttributeValue {
	item := NewRecord(EntityKey(ns, entity), EntityIndexes(ns, entity, ""), limiter.EntityRef(entity))
	item[AttrEntityVersion] = NumberAttribute(generation)
	markDisabled(ns, item, rec)
	return item
}

// markDisabled marks the record of a disabled subject. A list of those finds it, but for that of a namespace, which has a
// key of its own.
func markDisabled(ns string, item map[string]types.AttributeValue, rec limiter.Record) {
	if !rec.Disabled {
		return
	}
	item[attrDisabled] = &types.AttributeValueMemberBOOL{Value: true}
	if pk, _ := item[AttrPK].(*types.AttributeValueMemberS); pk.Value != systemPK(ns) {
		item[AttrGSI2PK], item[AttrGSI2SK] = TextAttribute(disabledPK(ns)), pk
	}
	d := rec.Disabling
	if d == nil {
		return
	}
	item[attrDisabledAt] = NumberAttribute(d.Since.UnixMilli())
	if d.By != "" {
		item[attrDisabledBy] = TextAttribute(d.By)
	}
	if d.Reason != "" {
		item[attrDisabledReason] = TextAttribute(d.Reason)
	}
}

// disabling reads since when the subject of a record is disabled, by which principal, and why.
func (r *Reader) disabling() *limiter.Disabling {
	if _, found := r.Item[attrDisabledAt]; !found {
		return nil
	}
	return &limiter.Disabling{
		Since: time.UnixMilli(r.Int(attrDisabledAt, math.MinInt64, math.MaxInt64)).UTC(),
		By:    r.optionalText(attrDisabledBy), Reason: r.optionalText(attrDisabledReason),
	}
}
