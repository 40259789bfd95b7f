package schema

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// AttrEvents is the attribute of a usage snapshot that counts writes.
const AttrEvents = "total_events"

// Attributes of usage snapshots. Those of limits and of positions begin with a prefix that
// no other attribute has.
const (
	attrWindow      = "window" // hour, day or month
	attrWindowStart = "window_start"
	attrWindowEnd   = "window_end"

	usedPrefix     = "u_" // and a limit: net millitokens
	positionPrefix = "p_" // and a shard of the stream: the last sequence number of it that is counted
)

const (
	skUsagePrefix = "#USAGE#"
	// usageTime is the form of starts in keys. It has a fixed length, so keys sort by time.
	usageTime = "2006-01-02T15:04:05Z"
)

// UsageOf names a usage snapshot. Entity and Resource have the form that they have in keys.
type UsageOf struct {
	Entity, Resource string
	Window           limiter.UsageWindow
	Start            time.Time
}

func (u *UsageOf) at() string { return u.Window.String() + "#" + u.Start.UTC().Format(usageTime) }

// Key returns the key of the snapshot.
func (u *UsageOf) Key(ns string) Key {
	return Key{ns + entityPrefix + u.Entity, skUsagePrefix + u.Resource + "#" + u.at()}
}

// ParseUsageKey returns the namespace and the snapshot that a key is of. It reports false for the key of
// another item.
func ParseUsageKey(k Key) (ns string, of UsageOf, ok bool) {
	ns, entity, isEntity := strings.Cut(k.PK, entityPrefix)
	rest, isUsage := strings.CutPrefix(k.SK, skUsagePrefix)
	parts := strings.Split(rest, "#") // resource, window, start
	if !isEntity || !isUsage || len(parts) != 3 {
		return "", UsageOf{}, false
	}
	w, err := limiter.ParseUsageWindow(parts[1])
	if err != nil {
		return "", UsageOf{}, false
	}
	start, err := time.Parse(usageTime, parts[2])
	return ns, UsageOf{Entity: entity, Resource: parts[0], Window: w, Start: start}, err == nil
}

// indexes returns the index keys of the snapshot. The one of the whole namespace does not begin
// as those of entities, so that lists of entities do not meet snapshots.
func (u *UsageOf) indexes(ns string) map[string]string {
	partition := homeOf(ns, u.Entity, u.Resource)
	return map[string]string{
		AttrGSI2PK: resourceKeyPK(ns, u.Resource, partition), AttrGSI2SK: "USAGE#" + u.at() + "#" + u.Entity,
		AttrGSI4PK: EverythingPK(ns, partition), AttrGSI4SK: ns + "/USAGE#" + u.at() + "#" + u.Entity + "#" + u.Resource,
	}
}

// attributes returns those that a snapshot has from the start, but for its key. expires is when it is
// dropped; zero = never.
func (u *UsageOf) attributes(ns string, expires time.Time) map[string]types.AttributeValue {
	all := make(map[string]types.AttributeValue)
	for attr, v := range u.indexes(ns) {
		all[attr] = &types.AttributeValueMemberS{Value: v}
	}
	for attr, v := range map[string]string{
		attrWindow: u.Window.String(), attrWindowStart: u.Start.UTC().Format(usageTime), attrWindowEnd: u.Window.End(u.Start).Format(usageTime),
	} {
		all[attr] = &types.AttributeValueMemberS{Value: v}
	}
	if ttl := expires.Unix(); ttl > 0 {
		all[AttrTTL] = NumberAttribute(ttl)
	}
	return all
}

// Snapshots are those that the use of a bucket at a time is counted in, where there is no aggregator.
type Snapshots struct {
	Bucket limiter.BucketKey // which limits usage leaves out: its variant and its window

	of aggregator.Bucket
	at time.Time
}

// SnapshotsOf returns those of a bucket's item. It reports false for an item that is no bucket's.
func SnapshotsOf(k Key, at time.Time) (s Snapshots, ok bool) {
	bucket, err := BucketOf(k)
	return Snapshots{Bucket: variantOf(k), of: bucket, at: at}, err == nil
}

// snapshot returns that of a window.
func (s *Snapshots) snapshot(w limiter.UsageWindow) UsageOf {
	return UsageOf{Entity: s.of.Entity, Resource: s.of.Resource, Window: w, Start: w.Start(s.at)}
}

// Key returns the key of the snapshot of a window.
func (s *Snapshots) Key(w limiter.UsageWindow) Key {
	u := s.snapshot(w)
	return u.Key(s.of.Namespace)
}

// Item returns the attributes of a new snapshot of a window, but for its key and names. keep is how long it stays
// after the end of the window.
func (s *Snapshots) Item(w limiter.UsageWindow, keep time.Duration) map[string]types.AttributeValue {
	u := s.snapshot(w)
	return u.attributes(s.of.Namespace, w.End(u.Start).Add(keep))
}

// UsedAttr returns the attribute of a snapshot that counts the use of a limit, in millitokens.
func UsedAttr(limit string) string { return usedPrefix + limit }

// LimitOfConsumed returns the limit whose consumption an attribute of a bucket's item counts.
func LimitOfConsumed(attr string) (limit string, ok bool) {
	rest, ok := strings.CutPrefix(attr, LimitPrefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "_"+LimitConsumed)
}

// UsageChange is a change of a snapshot, as an aggregator makes it.
type UsageChange struct {
	*aggregator.Change

	Of          UsageOf
	first, last Position
}

// NewUsageChange returns the write of a change. It is false for positions that are no sequence
// numbers.
func NewUsageChange(c *aggregator.Change) (change UsageChange, ok bool) {
	first, begins := NewPosition(c.First)
	last, ends := NewPosition(c.Last)
	s := &c.Snapshot
	of := UsageOf{Entity: s.Bucket.Entity, Resource: s.Bucket.Resource, Window: s.Window, Start: s.Start}
	return UsageChange{c, of, first, last}, begins && ends
}

// Position is a place in a shard of a stream: a sequence number, filled up with zeros in front
// so that positions are in order as texts.
type Position string

// maxSequence is the greatest length of a sequence number.
const maxSequence = 40

// NewPosition returns the position of a sequence number: 1 to 40 decimal digits.
func NewPosition(s aggregator.Sequence) (Position, bool) {
	sequence := string(s)
	if sequence == "" || len(sequence) > maxSequence || strings.Trim(sequence, "0123456789") != "" {
		return "", false
	}
	return Position(strings.Repeat("0", maxSequence-len(sequence)) + sequence), true
}

// Write returns the write of the change. Its condition is that the snapshot has nothing of the records yet. It
// answers with the snapshot as it is afterwards, or as it is when the condition does not hold.
func (c *UsageChange) Write() *ItemWrite {
	ns := c.Snapshot.Bucket.Namespace
	w := NewUpdate(c.Of.Key(ns))
	w.RequireAbsentOr(positionPrefix+c.Shard, "<", &types.AttributeValueMemberS{Value: string(c.first)})
	w.Set(positionPrefix+c.Shard, &types.AttributeValueMemberS{Value: string(c.last)})
	for attr, name := range map[string]string{AttrEntity: c.Names.Entity, AttrResource: c.Names.Resource} {
		if name != "" {
			w.Set(attr, TextAttribute(name))
		}
	}
	for attr, v := range c.Of.attributes(ns, c.Expires) {
		w.Set(attr, v)
	}
	for limit, n := range c.Used {
		w.AddValue(usedPrefix+limit, NumberAttribute(n)) // 0, too: the limit was in use
	}
	w.Add(AttrEvents, c.Events)
	return w
}

// ForgetPositions returns the write that drops the positions of a snapshot in shards of the
// stream that will never be read again.
func ForgetPositions(ns string, of *UsageOf, shards []string) *ItemWrite {
	w := NewUpdate(of.Key(ns))
	w.Require(attrWindow, "=", TextAttribute(of.Window.String())) // it makes no item
	for _, shard := range shards {
		w.Remove(positionPrefix + shard)
	}
	return w
}

// UsagePositions returns the positions that a snapshot has, by shard of the stream.
func UsagePositions(item map[string]types.AttributeValue) map[string]Position {
	positions := make(map[string]Position)
	for attr, v := range item {
		if shard, ok := strings.CutPrefix(attr, positionPrefix); ok {
			if s, ok := v.(*types.AttributeValueMemberS); ok {
				positions[shard] = Position(s.Value)
			}
		}
	}
	return positions
}

// ParseUsage reads a usage snapshot.
func ParseUsage(table string, item map[string]types.AttributeValue) (limiter.UsageSnapshot, error) {
	var u limiter.UsageSnapshot
	k, err := ItemKey(table, item)
	if err != nil {
		return u, err
	}
	r := NewReader(table, k, item)
	if u.Window, err = limiter.ParseUsageWindow(r.Text(attrWindow)); err != nil {
		r.Fail(attrWindow, "is none: %v", err)
	}
	if u.Start, err = time.Parse(usageTime, r.Text(attrWindowStart)); err != nil {
		r.Fail(attrWindowStart, "is no time in the form %s", usageTime)
	}
	u.Events = r.saturated(AttrEvents)
	_, entity, _ := strings.Cut(k.PK, "#")
	resource, _, _ := strings.Cut(strings.TrimPrefix(k.SK, skUsagePrefix), "#")
	u.Entity, u.Resource = r.nameOr(AttrEntity, entity), r.nameOr(AttrResource, resource)
	for attr := range item {
		if limit, ok := strings.CutPrefix(attr, usedPrefix); ok {
			u.Limits = append(u.Limits, limiter.LimitUsage{Limit: limit, Tokens: r.saturated(attr)})
		}
	}
	slices.SortFunc(u.Limits, func(a, b limiter.LimitUsage) int { return strings.Compare(a.Limit, b.Limit) })
	if r.Fault != nil {
		return limiter.UsageSnapshot{}, r.Fault
	}
	return u, nil
}

// saturated returns a sum, which DynamoDB makes without bounds: the nearest number of 64 bits.
func (r *Reader) saturated(attr string) int64 {
	text := r.Number(attr)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		r.Fail(attr, "is %s; it must be a whole number", text)
	}
	return n
}

// nameOr returns a name in full: the attribute, or the name that the key has, if that is in
// full. Else it is the form that the name has in keys.
func (r *Reader) nameOr(attr, inKey string) string {
	if r.Item[attr] != nil {
		return r.Text(attr)
	}
	name, err := unescapeAll(inKey)
	if err != nil || EscapeName(name) != inKey {
		return inKey
	}
	return name
}

// QueriesUsage returns queries that together find the snapshots that a filter selects, or for an
// entity without a resource all of that entity. A query of an index finds their keys alone.
func QueriesUsage(table, ns string, f limiter.UsageFilter) []*dynamodb.QueryInput {
	if !f.From.IsZero() && !f.To.IsZero() && !ceil(f.From).Before(ceil(f.To)) {
		return nil // DynamoDB refuses a range that ends before it begins
	}
	switch {
	case f.Entity != "" && f.Resource != "":
		return []*dynamodb.QueryInput{usageRange(query(table, "", AttrPK, entityPK(ns, f.Entity), "", ""), AttrSK, skUsagePrefix+EscapeName(f.Resource)+"#", f)}
	case f.Entity != "":
		return []*dynamodb.QueryInput{query(table, "", AttrPK, entityPK(ns, f.Entity), AttrSK, skUsagePrefix)}
	}
	all := make([]*dynamodb.QueryInput, IndexPartitions)
	for i := range all {
		if f.Resource != "" {
			all[i] = usageRange(query(table, IndexResources, AttrGSI2PK, resourcePK(ns, f.Resource, i), "", ""), AttrGSI2SK, "USAGE#", f)
		} else {
			all[i] = usageRange(query(table, IndexNamespace, AttrGSI4PK, EverythingPK(ns, i), "", ""), AttrGSI4SK, ns+"/USAGE#", f)
		}
	}
	return all
}

// usageRange narrows a query down to the sort keys with a prefix whose window a filter selects.
func usageRange(q *dynamodb.QueryInput, attr, prefix string, f limiter.UsageFilter) *dynamodb.QueryInput {
	const last = "\x7f" // sorts behind all that follows a prefix
	prefix += f.Window.String() + "#"
	first, end := prefix, prefix+last
	if !f.From.IsZero() {
		first += ceil(f.From).Format(usageTime)
	}
	if !f.To.IsZero() {
		end = prefix + ceil(f.To).Add(-time.Second).Format(usageTime) + last
	}
	q.KeyConditionExpression = aws.String("#pk = :pk AND #sk BETWEEN :first AND :last")
	q.ExpressionAttributeNames["#sk"] = attr
	q.ExpressionAttributeValues[":first"] = &types.AttributeValueMemberS{Value: first}
	q.ExpressionAttributeValues[":last"] = &types.AttributeValueMemberS{Value: end}
	return q
}

// ceil returns the first whole second that is not before a time.
func ceil(t time.Time) time.Time {
	return t.UTC().Add(time.Second - 1).Truncate(time.Second)
}
