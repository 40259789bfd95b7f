package schema

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of changes and audit events.
const (
	AttrRefs     = "refs" // of a change: the records that it changed; absent = any
	attrRefKind  = "kind"
	attrChangeAt = "at" // Unix ms
)

const (
	// ChangeTTL is how long the record of a change stays, and with it the tombstones of
	// deleted records: far longer than any replica takes to read them.
	ChangeTTL = time.Hour
	// MaxChangeRefs keeps the record of a change small; one of more says that anything changed.
	MaxChangeRefs = 100
)

// ChangeItem returns the record of a change, from which other replicas know which of
// their records are old. refs nil = any record may be.
func ChangeItem(ns string, generation uint64, now time.Time, refs []limiter.Ref) map[string]types.AttributeValue {
	k := ChangeKey(ns, generation)
	item := k.Attributes()
	for name, value := range NamespaceIndex(ns, k) {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	item[AttrCounter] = NumberAttribute(generation)
	item[attrChangeAt] = NumberAttribute(now.UnixMilli())
	item[AttrTTL] = NumberAttribute(now.Add(ChangeTTL).Unix())
	if list := refsAttribute(refs); list != nil {
		item[AttrRefs] = list
	}
	return item
}

// refsAttribute returns refs as an attribute; nil when they are too many, or have
// names that are too long for one.
func refsAttribute(refs []limiter.Ref) types.AttributeValue {
	if refs == nil || len(refs) > MaxChangeRefs {
		return nil
	}
	list := make([]types.AttributeValue, len(refs))
	size := 0
	for i, ref := range refs {
		if size += len(ref.Entity) + len(ref.Resource); size > MaxChangeRefs*MaxNameAttribute/4 {
			return nil
		}
		list[i] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			attrRefKind: NumberAttribute(int(ref.Kind)), AttrEntity: TextAttribute(ref.Entity), AttrResource: TextAttribute(ref.Resource),
		}}
	}
	return &types.AttributeValueMemberL{Value: list}
}

// ParseChange reads the refs of the records that a change changed; nil for any.
func ParseChange(table, ns string, generation uint64, item map[string]types.AttributeValue) ([]limiter.Ref, error) {
	r := NewReader(table, ChangeKey(ns, generation), item)
	if r.Item[AttrRefs] == nil {
		return nil, nil
	}
	list, ok := r.Item[AttrRefs].(*types.AttributeValueMemberL)
	if !ok {
		r.Fail(AttrRefs, "is %s; it must be a list", TypeName(r.Item[AttrRefs]))
		return nil, r.Fault
	}
	refs := make([]limiter.Ref, 0, len(list.Value))
	for i, element := range list.Value {
		m, ok := element.(*types.AttributeValueMemberM)
		if !ok {
			r.Fail(AttrRefs, "has %s as element %d; it must be a map", TypeName(element), i)
			return nil, r.Fault
		}
		ref := NewReader(table, r.key, m.Value)
		kind := ref.Int(attrRefKind, int64(limiter.RefEntity), int64(limiter.RefSystemLimits))
		refs = append(refs, limiter.Ref{Kind: limiter.RefKind(kind), Entity: ref.Text(AttrEntity), Resource: ref.Text(AttrResource)}) // #nosec G115 -- in range
		if ref.Fault != nil {
			r.Fail(AttrRefs, "has in element %d the attribute %s, which %s", i, ref.Fault.Attribute, ref.Fault.Problem)
			return nil, r.Fault
		}
	}
	return refs, nil
}
