package dynamo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Attributes of entities and limits.
const (
	attrEntityVersion = "version"        // generation of the change that wrote the entity
	attrLimitsVersion = "config_version" // generation of the change that wrote the limits
	attrDeleted       = "deleted"        // true: there is no such record, and this one says since when
	attrName          = "name"
	attrParent        = "parent_id"
	attrCascade       = "cascade"
	attrMetadata      = "metadata"
	attrCreatedAt     = "created_at" // Unix ms
	attrOnUnavailable = "on_unavailable"
)

// Attributes of one stored limit: l_{limit}_{one of these}.
const (
	storedPrefix    = "l_"
	storedCapacity  = "cp" // tokens
	storedAmount    = "ra" // tokens
	storedPeriod    = "rp" // seconds, with up to three decimals
	storedMaxDebt   = "md" // tokens; absent = 0
	storedUnlimited = "un" // true, and none of the others
)

func storedAttr(limit, attr string) string { return storedPrefix + limit + "_" + attr }

func numberAttribute[N int | int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// keyOfRef returns the key of a catalog record.
func keyOfRef(ns string, ref limiter.Ref) key {
	switch ref.Kind {
	case limiter.RefEntityLimits:
		return entityLimitsKey(ns, ref.Entity, ref.Resource)
	case limiter.RefResourceLimits:
		return resourceLimitsKey(ns, ref.Resource)
	case limiter.RefSystemLimits:
		return systemLimitsKey(ns)
	case limiter.RefEntity:
	}
	return entityKey(ns, ref.Entity)
}

// newRecord returns an item with its key, the keys of its indexes, and the names
// that it is about.
func newRecord(k key, indexes map[string]string, ref limiter.Ref) map[string]types.AttributeValue {
	item := k.attributes()
	for name, value := range indexes {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	about := map[string]string{}
	if ref.Kind == limiter.RefEntity || ref.Kind == limiter.RefEntityLimits {
		about[attrEntity] = ref.Entity
	}
	if ref.Kind == limiter.RefEntityLimits || ref.Kind == limiter.RefResourceLimits {
		about[attrResource] = ref.Resource
	}
	for name, value := range about {
		if attribute := nameAttribute(value); attribute != nil {
			item[name] = attribute
		}
	}
	return item
}

// versionAttr returns the attribute with the generation that wrote a record.
func versionAttr(kind limiter.RefKind) string {
	if kind == limiter.RefEntity {
		return attrEntityVersion
	}
	return attrLimitsVersion
}

// tombstone returns the item that says that a record was deleted by a change. It
// stays as long as the change's own record does: readers find out by it that
// what they have read is from before and from after the change.
func tombstone(ns string, k key, kind limiter.RefKind, generation uint64, expires time.Time) map[string]types.AttributeValue {
	item := k.attributes()
	for name, value := range namespaceIndex(ns, k) {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	item[attrDeleted] = &types.AttributeValueMemberBOOL{Value: true}
	item[versionAttr(kind)] = numberAttribute(generation)
	item[attrTTL] = numberAttribute(expires.Unix())
	return item
}

// entityItem returns an entity as an item.
func entityItem(ns string, e *limiter.Entity) map[string]types.AttributeValue {
	item := newRecord(entityKey(ns, e.ID), entityIndexes(ns, e.ID, e.Parent), limiter.EntityRef(e.ID))
	item[attrEntityVersion] = numberAttribute(e.Version)
	item[attrCreatedAt] = numberAttribute(e.CreatedAt.UnixMilli())
	item[attrCascade] = &types.AttributeValueMemberBOOL{Value: e.Cascade}
	if e.Name != "" {
		item[attrName] = textAttribute(e.Name)
	}
	if e.Parent != "" {
		item[attrParent] = textAttribute(e.Parent)
	}
	if len(e.Metadata) > 0 {
		metadata := make(map[string]types.AttributeValue, len(e.Metadata))
		for name, value := range e.Metadata {
			metadata[escapeAll(name)] = textAttribute(value)
		}
		item[attrMetadata] = &types.AttributeValueMemberM{Value: metadata}
	}
	return item
}

// limitsItem returns limits, or a policy, as an item.
func limitsItem(ns string, ref limiter.Ref, rec limiter.Record, generation uint64) map[string]types.AttributeValue {
	k := keyOfRef(ns, ref)
	indexes := namespaceIndex(ns, k)
	if ref.Kind == limiter.RefEntityLimits {
		indexes = entityLimitsIndexes(ns, ref.Entity, ref.Resource)
	}
	item := newRecord(k, indexes, ref)
	item[attrLimitsVersion] = numberAttribute(generation)
	if rec.OnUnavailable != limiter.Unset {
		item[attrOnUnavailable] = &types.AttributeValueMemberS{Value: rec.OnUnavailable.String()}
	}
	for i := range rec.Limits.Len() {
		l := rec.Limits.At(i)
		if l.Unlimited {
			item[storedAttr(l.Name, storedUnlimited)] = &types.AttributeValueMemberBOOL{Value: true}
			continue
		}
		item[storedAttr(l.Name, storedCapacity)] = numberAttribute(l.Capacity)
		item[storedAttr(l.Name, storedAmount)] = numberAttribute(l.RefillAmount)
		item[storedAttr(l.Name, storedPeriod)] = &types.AttributeValueMemberN{Value: formatSeconds(l.RefillPeriod)}
		if l.MaxDebt != 0 {
			item[storedAttr(l.Name, storedMaxDebt)] = numberAttribute(l.MaxDebt)
		}
	}
	return item
}

// formatSeconds writes whole milliseconds as seconds; 1.5 s is "1.5".
func formatSeconds(d time.Duration) string {
	ms := d.Milliseconds()
	s := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return s
}

// parseSeconds undoes formatSeconds.
func parseSeconds(s string) (time.Duration, bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	decimals = strings.TrimRight(decimals, "0")
	if whole == "" || len(decimals) > 3 || strings.Trim(whole+decimals, digits) != "" {
		return 0, false
	}
	ms, err := strconv.ParseInt(whole+(decimals + "000")[:3], 10, 64)
	if err != nil || ms > tokenbucket.MaxPeriod {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// storedRecord is a catalog record as read.
type storedRecord struct {
	record     limiter.Record
	generation uint64 // that wrote it; 0 for one that was never there
}

// parseRecord reads the item of a ref, nil for none. It takes nothing for
// granted: an item that is not as this program writes it is an error, because
// taking it for absent would lift the limits that it holds.
func parseRecord(table, ns string, ref limiter.Ref, item map[string]types.AttributeValue) (storedRecord, error) {
	if item == nil {
		return storedRecord{}, nil
	}
	r := newRecordReader(table, keyOfRef(ns, ref), item)
	stored := storedRecord{generation: r.uint(versionAttr(ref.Kind), 1)}
	switch _, deleted := item[attrDeleted]; {
	case deleted:
		if !r.bool(attrDeleted) {
			r.fail(attrDeleted, "is false; it must be true or absent")
		}
	case ref.Kind == limiter.RefEntity:
		stored.record.Entity = r.entity(ref.Entity)
		stored.record.Entity.Version = stored.generation
	default:
		stored.record.Limits = r.limits()
		if ref.Kind == limiter.RefSystemLimits {
			stored.record.OnUnavailable = r.policy()
		}
		if stored.record.Empty() {
			r.fail(storedPrefix+"{limit}_"+storedCapacity, "is missing; there must be at least one limit")
		}
	}
	if r.fault != nil {
		return storedRecord{}, r.fault
	}
	return stored, nil
}

func (r *recordReader) entity(id string) *limiter.Entity {
	if _, found := r.item[attrEntity]; found {
		if stored := r.text(attrEntity); stored != id {
			r.fail(attrEntity, "is %.100q; it must be %.100q, which the key stands for", stored, id)
		}
	}
	e := &limiter.Entity{
		ID: strings.Clone(id), Name: r.optionalText(attrName), Parent: r.optionalText(attrParent), Cascade: r.bool(attrCascade),
		CreatedAt: time.UnixMilli(r.int(attrCreatedAt, math.MinInt64, math.MaxInt64)).UTC(),
	}
	metadata, found := r.item[attrMetadata]
	if !found {
		return e
	}
	m, ok := metadata.(*types.AttributeValueMemberM)
	if !ok {
		r.fail(attrMetadata, "is %s; it must be a map", typeName(metadata))
		return e
	}
	values := newRecordReader(r.table, r.key, m.Value)
	e.Metadata = make(map[string]string, len(m.Value))
	for _, escaped := range slices.Sorted(maps.Keys(m.Value)) {
		name, err := unescapeAll(escaped)
		if err != nil {
			values.fail(escaped, "is no escaped name: %v", err)
		}
		e.Metadata[name] = values.text(escaped)
	}
	if values.fault != nil {
		r.fail(attrMetadata+"."+values.fault.Attribute, "%s", values.fault.Problem)
	}
	return e
}

// limits reads all limits of the item; nil for none.
func (r *recordReader) limits() *limiter.Limits {
	names := make(map[string]bool)
	for attr := range r.item {
		rest, found := strings.CutPrefix(attr, storedPrefix)
		if !found {
			continue
		}
		end := max(strings.LastIndexByte(rest, '_'), 0)
		switch rest[end:] {
		case "_" + storedCapacity, "_" + storedAmount, "_" + storedPeriod, "_" + storedMaxDebt, "_" + storedUnlimited:
			names[rest[:end]] = true
		default:
			r.fail(attr, "is none of a limit's, which are l_{limit}_cp, _ra, _rp, _md or _un")
		}
	}
	if len(names) == 0 {
		return nil
	}
	all := make([]limiter.Limit, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, r.limit(name))
	}
	if r.fault != nil {
		return nil
	}
	limits, err := limiter.NewLimits(all...)
	if err != nil {
		r.fail(storedPrefix+"{limit}_"+storedCapacity, "is of limits that cannot be: %v", err)
	}
	return limits
}

func (r *recordReader) limit(name string) limiter.Limit {
	if _, found := r.item[storedAttr(name, storedUnlimited)]; found {
		if !r.bool(storedAttr(name, storedUnlimited)) {
			r.fail(storedAttr(name, storedUnlimited), "is false; it must be true or absent")
		}
		for _, attr := range []string{storedCapacity, storedAmount, storedPeriod, storedMaxDebt} {
			if _, found := r.item[storedAttr(name, attr)]; found {
				r.fail(storedAttr(name, attr), "stands beside %s; a limit is unlimited or has numbers", storedAttr(name, storedUnlimited))
			}
		}
		return limiter.Unlimited(name)
	}
	period := storedAttr(name, storedPeriod)
	number := r.number(period)
	if number == "" {
		return limiter.Limit{}
	}
	d, ok := parseSeconds(number)
	if !ok || d < time.Second {
		r.fail(period, "is %s; it must be seconds, 1 to %d, with at most three decimals", number, tokenbucket.MaxPeriod/1000)
	}
	l := limiter.Custom(name, r.int(storedAttr(name, storedCapacity), 1, limiter.MaxTokens), r.int(storedAttr(name, storedAmount), 1, limiter.MaxTokens), d)
	if debt := storedAttr(name, storedMaxDebt); r.item[debt] != nil {
		l.MaxDebt = r.int(debt, limiter.NoDebt, limiter.MaxTokens)
	}
	return l
}

func (r *recordReader) policy() limiter.Policy {
	if _, found := r.item[attrOnUnavailable]; !found {
		return limiter.Unset
	}
	text := r.text(attrOnUnavailable)
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Local} {
		if p.String() == text {
			return p
		}
	}
	r.fail(attrOnUnavailable, "is %.100q; it must be %s, %s or %s", text, limiter.Allow, limiter.Deny, limiter.Local)
	return limiter.Unset
}
