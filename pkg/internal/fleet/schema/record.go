package schema

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of entities and limits.
const (
	AttrEntityVersion = "version"        // generation of the change that wrote the entity
	attrLimitsVersion = "config_version" // generation of the change that wrote the limits
	AttrDeleted       = "deleted"        // true: there is no such record, and this one says since when
	attrName          = "name"
	attrParent        = "parent_id"
	attrCascade       = "cascade"
	attrPlan          = "plan"
	attrMetadata      = "metadata"
	AttrCreatedAt     = "created_at" // Unix ms
	attrOnUnavailable = "on_unavailable"
	attrAlone         = "alone" // true; absent = no
)

// NumberAttribute returns a whole number as an attribute.
func NumberAttribute[N int | int64 | uint64](n N) types.AttributeValue {
	if n < 0 {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(n), 10)}
}

// KeyOfRef returns the key of a catalog record.
func KeyOfRef(ns string, ref limiter.Ref) Key {
	switch ref.Kind {
	case limiter.RefEntityLimits:
		return EntityLimitsKey(ns, ref.Entity, ref.Resource)
	case limiter.RefResourceLimits:
		return resourceLimitsKey(ns, ref.Resource)
	case limiter.RefSystemLimits:
		return systemLimitsKey(ns)
	case limiter.RefEntity:
	}
	return EntityKey(ns, ref.Entity)
}

// RefOfItem returns the ref of a catalog record, by its key and its names. A name that is
// too long to be an attribute stands as it does in the key.
func RefOfItem(table string, k Key, item map[string]types.AttributeValue) (limiter.Ref, error) {
	r := NewReader(table, k, item)
	name := func(attr, inKey string) string {
		if item[attr] != nil {
			return r.Text(attr)
		}
		return inKey
	}
	_, first, _ := strings.Cut(k.PK, "#")
	resource, limits := strings.CutPrefix(k.SK, skConfigPrefix)
	var ref limiter.Ref
	switch {
	case limits:
		ref = limiter.EntityLimitsRef(name(AttrEntity, first), name(AttrResource, resource))
	case k.SK == skMeta:
		ref = limiter.EntityRef(name(AttrEntity, first))
	default:
		ref = limiter.ResourceLimitsRef(name(AttrResource, first))
	}
	if r.Fault != nil {
		return limiter.Ref{}, r.Fault
	}
	return ref, nil
}

// NewRecord returns an item with its key, the keys of its indexes, and the names
// that it is about.
func NewRecord(k Key, indexes map[string]string, ref limiter.Ref) map[string]types.AttributeValue {
	item := k.Attributes()
	for name, value := range indexes {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	about := map[string]string{}
	if ref.Kind == limiter.RefEntity || ref.Kind == limiter.RefEntityLimits {
		about[AttrEntity] = ref.Entity
	}
	if ref.Kind == limiter.RefEntityLimits || ref.Kind == limiter.RefResourceLimits {
		about[AttrResource] = ref.Resource
	}
	for name, value := range about {
		if attribute := NameAttribute(value); attribute != nil {
			item[name] = attribute
		}
	}
	return item
}

// versionAttr returns the attribute with the generation that wrote a record.
func versionAttr(kind limiter.RefKind) string {
	if kind == limiter.RefEntity {
		return AttrEntityVersion
	}
	return attrLimitsVersion
}

// Tombstone returns the item that says that a record was deleted by a change. It
// stays as long as the change's own record does: it shows a reader that its records
// are from before and from after the change.
func Tombstone(ns string, k Key, kind limiter.RefKind, generation uint64, expires time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	for name, value := range NamespaceIndex(ns, k) {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	item[AttrDeleted] = &types.AttributeValueMemberBOOL{Value: true}
	item[versionAttr(kind)] = NumberAttribute(generation)
	item[AttrTTL] = NumberAttribute(expires.Unix())
	return item
}

// EntityItem returns the record of an entity as an item.
func EntityItem(ns string, rec limiter.Record) map[string]types.AttributeValue {
	e := rec.Entity
	item := NewRecord(EntityKey(ns, e.ID), EntityIndexes(ns, e.ID, e.Parent), limiter.EntityRef(e.ID))
	item[AttrEntityVersion] = NumberAttribute(e.Version)
	item[AttrCreatedAt] = NumberAttribute(e.CreatedAt.UnixMilli())
	item[attrCascade] = &types.AttributeValueMemberBOOL{Value: e.Cascade}
	markDisabled(ns, item, rec)
	if e.Name != "" {
		item[attrName] = TextAttribute(e.Name)
	}
	if e.Parent != "" {
		item[attrParent] = TextAttribute(e.Parent)
	}
	if e.Plan != "" {
		item[attrPlan] = TextAttribute(e.Plan)
	}
	if len(e.Metadata) > 0 {
		metadata := make(map[string]types.AttributeValue, len(e.Metadata))
		for name, value := range e.Metadata {
			metadata[escapeAll(name)] = TextAttribute(value)
		}
		item[attrMetadata] = &types.AttributeValueMemberM{Value: metadata}
	}
	return item
}

// markAlone marks limits that stand alone.
func markAlone(item map[string]types.AttributeValue, alone bool) {
	if alone {
		item[attrAlone] = &types.AttributeValueMemberBOOL{Value: true}
	}
}

// flag reads an attribute that is true or absent.
func (r *Reader) flag(attr string) bool {
	if _, found := r.Item[attr]; !found {
		return false
	}
	if !r.bool(attr) {
		r.Fail(attr, "is false; it must be true or absent")
	}
	return true
}

func (r *Reader) entity(id string) *limiter.Entity {
	if _, found := r.Item[AttrEntity]; found {
		if stored := r.Text(AttrEntity); stored != id {
			r.Fail(AttrEntity, "is %.100q; it must be %.100q, which the key stands for", stored, id)
		}
	}
	e := &limiter.Entity{
		ID: strings.Clone(id), Name: r.optionalText(attrName), Parent: r.optionalText(attrParent), Cascade: r.bool(attrCascade), Plan: r.optionalText(attrPlan),
		CreatedAt: time.UnixMilli(r.Int(AttrCreatedAt, math.MinInt64, math.MaxInt64)).UTC(),
	}
	metadata, found := r.Item[attrMetadata]
	if !found {
		return e
	}
	m, ok := metadata.(*types.AttributeValueMemberM)
	if !ok {
		r.Fail(attrMetadata, "is %s; it must be a map", TypeName(metadata))
		return e
	}
	values := NewReader(r.table, r.key, m.Value)
	e.Metadata = make(map[string]string, len(m.Value))
	for _, escaped := range slices.Sorted(maps.Keys(m.Value)) {
		name, err := unescapeAll(escaped)
		if err != nil {
			values.Fail(escaped, "is no escaped name: %v", err)
		}
		e.Metadata[name] = values.Text(escaped)
	}
	if values.Fault != nil {
		r.Fail(attrMetadata+"."+values.Fault.Attribute, "%s", values.Fault.Problem)
	}
	return e
}
