package schema

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// StoredRecord is a catalog record as read.
type StoredRecord struct {
	Record     limiter.Record
	Generation uint64 // that wrote it; 0 for one that was never there
}

// ParseRecord reads the item of a ref, nil for none. It takes nothing for
// granted: an item that is not as this program writes it is an error, because
// taking it for absent would lift the limits that it holds.
func ParseRecord(table, ns string, ref limiter.Ref, item map[string]types.AttributeValue) (StoredRecord, error) {
	if item == nil {
		return StoredRecord{}, nil
	}
	r := NewReader(table, KeyOfRef(ns, ref), item)
	stored := StoredRecord{Generation: r.Uint(versionAttr(ref.Kind), 1)}
	deleted := r.flag(AttrDeleted)
	stored.Record.Disabled = !deleted && r.flag(attrDisabled)
	if stored.Record.Disabled {
		stored.Record.Disabling = r.disabling()
	}
	switch {
	case deleted:
	case ref.Kind != limiter.RefEntity:
		stored.Record.Limits, stored.Record.Alone = r.limits(), r.flag(attrAlone)
		stored.Record.Budgets = r.budgets(stored.Record.Limits)
		if ref.Kind == limiter.RefSystemLimits {
			stored.Record.OnUnavailable = r.policy()
			stored.Record.State, stored.Record.Since = r.state()
		}
		if stored.Record.Alone && (ref.Kind == limiter.RefSystemLimits || stored.Record.Limits.Len() == 0) {
			r.Fail(attrAlone, "is true; only limits of an entity or a resource stand alone")
		}
		if stored.Record.Empty() {
			r.Fail(storedPrefix+"{limit}_"+storedCapacity, "is missing; there must be at least one limit")
		}
	case !stored.Record.Disabled || item[AttrCreatedAt] != nil:
		stored.Record.Entity = r.entity(ref.Entity)
		stored.Record.Entity.Version = stored.Generation
	}
	if r.Fault != nil {
		return StoredRecord{}, r.Fault
	}
	return stored, nil
}

// LimitsKeys returns the keys of the places of limits that limiter.BudgetPlaces names. The names have the form that they
// have in keys.
func LimitsKeys(ns, entity, resource string) [4]Key {
	return [...]Key{
		{ns + entityPrefix + entity, skConfigPrefix + resource},
		{ns + entityPrefix + entity, skConfigPrefix + EscapeName(limiter.DefaultResource)},
		{ns + resourcePrefix + resource, skConfig},
		systemLimitsKey(ns),
	}
}

// ParseLimits reads an item of one of LimitsKeys, by its own key.
func ParseLimits(table string, item map[string]types.AttributeValue) (Key, limiter.Record, error) {
	k, err := ItemKey(table, item)
	if err != nil {
		return Key{}, limiter.Record{}, err
	}
	ref := limiter.Ref{Kind: limiter.RefEntityLimits}
	if k.SK == skConfig {
		ref.Kind = limiter.RefResourceLimits
		if strings.HasSuffix(k.PK, "/SYSTEM#") {
			ref.Kind = limiter.RefSystemLimits
		}
	}
	ns, _, _ := strings.Cut(k.PK, "/")
	stored, err := ParseRecord(table, ns, ref, item)
	return k, stored.Record, err
}
