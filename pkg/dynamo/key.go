package dynamo

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes of the table's key and of its indexes' keys.
const (
	attrPK     = "PK"
	attrSK     = "SK"
	attrGSI1PK = "GSI1PK"
	attrGSI1SK = "GSI1SK"
	attrGSI2PK = "GSI2PK"
	attrGSI2SK = "GSI2SK"
	attrGSI3PK = "GSI3PK"
	attrGSI3SK = "GSI3SK"
	attrGSI4PK = "GSI4PK"
	attrGSI4SK = "GSI4SK"
)

const (
	// registryNS is the namespace of the records about the table: it is no id that
	// a namespace can have.
	registryNS = "_"
	// indexPartitions is how many partition keys a resource has in GSI2, and a
	// namespace in GSI4, so that creations do not all write to one.
	indexPartitions = 16
)

// Fixed sort keys, and the beginnings of the others.
const (
	skMeta       = "#META"
	skState      = "#STATE"
	skConfig     = "#CONFIG"
	skVersion    = "#VERSION"
	skGeneration = "#GENERATION"
	skMark       = "#MARK"
	skSecret     = "#SECRET"

	skConfigPrefix    = "#CONFIG#"
	skUsagePrefix     = "#USAGE#"
	skAuditPrefix     = "#AUDIT#"
	skChangePrefix    = "#CHANGE#"
	skNamespacePrefix = "#NAMESPACE#"
	skNSIDPrefix      = "#NSID#"
)

// key is the primary key of an item.
type key struct{ pk, sk string }

// String returns the key as messages name it.
func (k key) String() string { return fmt.Sprintf("PK=%q SK=%q", k.pk, k.sk) }

// attributes returns the key as the SDK takes it.
func (k key) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attrPK: &types.AttributeValueMemberS{Value: k.pk},
		attrSK: &types.AttributeValueMemberS{Value: k.sk},
	}
}

func entityPK(ns, entity string) string { return ns + "/ENTITY#" + escapeName(entity) }
func systemPK(ns string) string         { return ns + "/SYSTEM#" }

// auditPK takes the subject as it stands in keys: see auditSubject.
func auditPK(ns, subject string) string { return ns + "/AUDIT#" + subject }

func entityKey(ns, entity string) key { return key{entityPK(ns, entity), skMeta} }

func entityLimitsKey(ns, entity, resource string) key {
	return key{entityPK(ns, entity), skConfigPrefix + escapeName(resource)}
}

func resourceLimitsKey(ns, resource string) key {
	return key{ns + "/RESOURCE#" + escapeName(resource), skConfig}
}

func systemLimitsKey(ns string) key { return key{systemPK(ns), skConfig} }

// bucketKey returns the key of one shard of a bucket. The variant stands behind
// the resource, as 16 hexadecimal digits, unless it is 0.
func bucketKey(ns, entity, resource string, variant uint64, shard int) key {
	return key{ns + "/BUCKET#" + escapeName(entity) + "#" + bucketTail(resource, variant, shard), skState}
}

func bucketTail(resource string, variant uint64, shard int) string {
	return escapeName(resource) + shardTail(variant, shard)
}

func shardTail(variant uint64, shard int) string {
	if variant == 0 {
		return "#" + strconv.Itoa(shard)
	}
	return fmt.Sprintf("#%016x#%d", variant, shard)
}

func usageKey(ns, entity, resource string, w window) key {
	return key{entityPK(ns, entity), skUsagePrefix + escapeName(resource) + "#" + w.String()}
}

// auditKey returns the key of an audit event of a subject, as it stands in keys.
func auditKey(ns, subject, id string) key { return key{auditPK(ns, subject), skAuditPrefix + id} }

func generationKey(ns string) key { return key{systemPK(ns), skGeneration} }

// changeKey returns the key of what a generation changed. Keys sort as generations do.
func changeKey(ns string, generation uint64) key {
	return key{systemPK(ns), fmt.Sprintf("%s%020d", skChangePrefix, generation)}
}

// markKey returns the key of who settled a reservation. No id that a mark can have is
// so long that its hash stands here.
func markKey(ns, id string) key { return key{ns + "/SETTLED#" + escapeName(id), skMark} }

// secretKey takes a name that limiter.CheckSecret allows.
func secretKey(name string) key { return key{registryNS + "/SECRET#" + name, skSecret} }

func versionKey() key       { return key{systemPK(registryNS), skVersion} }
func allGenerationKey() key { return generationKey(registryNS) }
func namespaceKey(name string) key {
	return key{systemPK(registryNS), skNamespacePrefix + escapeName(name)}
}
func namespaceIDKey(id string) key    { return key{systemPK(registryNS), skNSIDPrefix + id} }
func childrenPK(ns, id string) string { return ns + "/PARENT#" + escapeName(id) }

// customLimitsPK returns the partition key in GSI3 of all entities with limits of
// their own for a resource.
func customLimitsPK(ns, resource string) string { return ns + "/ENTITY_CONFIG#" + escapeName(resource) }

// resourcePK returns one of the indexPartitions partition keys of a resource in GSI2.
func resourcePK(ns, resource string, partition int) string {
	return fmt.Sprintf("%s/RESOURCE#%s#%d", ns, escapeName(resource), partition)
}

// everythingPK returns one of the indexPartitions partition keys of a namespace in GSI4.
func everythingPK(ns string, partition int) string { return ns + "#" + strconv.Itoa(partition) }

// indexPartition spreads items over the partition keys of an index, the same in
// every process and every version of the program.
func indexPartition(s string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return int(h.Sum32() % indexPartitions)
}

// entityIndexes returns the index keys of an entity.
func entityIndexes(ns, entity, parent string) map[string]string {
	keys := namespaceIndex(ns, entityKey(ns, entity))
	if parent != "" {
		keys[attrGSI1PK] = childrenPK(ns, parent)
		keys[attrGSI1SK] = "CHILD#" + escapeName(entity)
	}
	return keys
}

// entityLimitsIndexes returns the index keys of an entity's own limits.
func entityLimitsIndexes(ns, entity, resource string) map[string]string {
	keys := namespaceIndex(ns, entityLimitsKey(ns, entity, resource))
	keys[attrGSI3PK] = customLimitsPK(ns, resource)
	keys[attrGSI3SK] = escapeName(entity)
	return keys
}

// bucketIndexes returns the index keys of a bucket's item.
func bucketIndexes(ns, entity, resource string, variant uint64, shard int) map[string]string {
	k := bucketKey(ns, entity, resource, variant, shard)
	keys := namespaceIndex(ns, k)
	keys[attrGSI2PK] = resourcePK(ns, resource, indexPartition(k.pk))
	keys[attrGSI2SK] = "BUCKET#" + escapeName(entity) + shardTail(variant, shard)
	keys[attrGSI3PK] = entityPK(ns, entity)
	keys[attrGSI3SK] = "BUCKET#" + bucketTail(resource, variant, shard)
	return keys
}

// usageIndexes returns the index keys of a usage snapshot.
func usageIndexes(ns, entity, resource string, w window) map[string]string {
	k := usageKey(ns, entity, resource, w)
	keys := namespaceIndex(ns, k)
	keys[attrGSI2PK] = resourcePK(ns, resource, indexPartition(k.pk))
	keys[attrGSI2SK] = "USAGE#" + w.String() + "#" + escapeName(entity)
	return keys
}

// namespaceIndex returns the index keys of every item of a namespace.
func namespaceIndex(ns string, k key) map[string]string {
	return map[string]string{attrGSI4PK: everythingPK(ns, indexPartition(k.pk)), attrGSI4SK: k.pk}
}

// windowLength is how long a usage snapshot's window is.
type windowLength uint8

const (
	hourly windowLength = iota
	daily
	monthly
)

// layouts of windows in keys; they differ in size, so that no two lengths meet.
var windowLayouts = [...]string{hourly: "2006-01-02T15:04:05Z", daily: "2006-01-02", monthly: "2006-01"}

// window is a span of time that usage is summed over, in UTC.
type window struct {
	length windowLength
	start  time.Time
}

// windowAt returns the window that a time is in.
func windowAt(l windowLength, t time.Time) window {
	t = t.UTC()
	switch l {
	case monthly:
		t = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	case daily:
		t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	case hourly:
		t = t.Truncate(time.Hour)
	}
	return window{l, t}
}

// String returns the window's start as it stands in keys.
func (w window) String() string { return w.start.Format(windowLayouts[w.length]) }

func parseWindow(s string) (window, error) {
	for l, layout := range windowLayouts {
		if len(s) != len(layout) {
			continue
		}
		start, err := time.Parse(layout, s)
		if w := windowAt(windowLength(l), start); err == nil && w.String() == s { // #nosec G115 -- three of them
			return w, nil
		}
	}
	return window{}, fmt.Errorf("window %q: want the start of an hour (2006-01-02T15:00:00Z), a day (2006-01-02) or a month (2006-01)", s)
}
