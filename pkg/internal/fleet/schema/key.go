package schema

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of the table's key and of its indexes' keys.
const (
	AttrPK     = "PK"
	AttrSK     = "SK"
	AttrGSI1PK = "GSI1PK"
	AttrGSI1SK = "GSI1SK"
	AttrGSI2PK = "GSI2PK"
	AttrGSI2SK = "GSI2SK"
	AttrGSI3PK = "GSI3PK"
	AttrGSI3SK = "GSI3SK"
	AttrGSI4PK = "GSI4PK"
	AttrGSI4SK = "GSI4SK"
)

const (
	// RegistryNS is the namespace of the records about the table: it is no id that
	// a namespace can have.
	RegistryNS = "_"
	// IndexPartitions is how many partition keys a resource has in GSI2, and a
	// namespace in GSI4, so that creations do not all write to one.
	IndexPartitions = 16
)

// Names of the indexes.
const (
	IndexChildren  = "GSI1" // parent to children
	IndexResources = "GSI2" // resource to buckets and usage; audit events of a namespace by time
	IndexLimits    = "GSI3" // entities with limits of their own, and buckets by entity
	IndexNamespace = "GSI4" // everything in a namespace
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
	skAuditPrefix     = "#AUDIT#"
	skChangePrefix    = "#CHANGE#"
	skNamespacePrefix = "#NAMESPACE#"
	skNSIDPrefix      = "#NSID#"
)

// Key is the primary key of an item: its partition key and its sort key. The functions
// that make one take ns, the id of a namespace, and names of any bytes.
type Key struct{ PK, SK string }

// String returns the key as messages name it.
func (k Key) String() string { return fmt.Sprintf("PK=%q SK=%q", k.PK, k.SK) }

// Attributes returns the key in the form of the SDK, as a new map.
func (k Key) Attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		AttrPK: &types.AttributeValueMemberS{Value: k.PK},
		AttrSK: &types.AttributeValueMemberS{Value: k.SK},
	}
}

// The beginnings of partition keys, behind the namespace.
const (
	entityPrefix   = "/ENTITY#"
	resourcePrefix = "/RESOURCE#"
	// entityLimitsPrefix is that of the limits of entities, in GSI4 alone: a list of them reads no entity.
	entityLimitsPrefix = "/LIMITS#"
	auditPrefix        = "/AUDIT#"
)

func entityPK(ns, entity string) string { return ns + entityPrefix + EscapeName(entity) }

func systemPK(ns string) string { return ns + "/SYSTEM#" }

// AuditPK returns the partition key of the audit events of a subject, which is in the
// form of [AuditSubject].
func AuditPK(ns, subject string) string { return ns + auditPrefix + subject }

// EntityKey returns the key of an entity.
func EntityKey(ns, entity string) Key { return Key{entityPK(ns, entity), skMeta} }

// EntityLimitsKey returns the key of the limits of an entity for a resource.
func EntityLimitsKey(ns, entity, resource string) Key {
	return Key{entityPK(ns, entity), skConfigPrefix + EscapeName(resource)}
}

func resourceLimitsKey(ns, resource string) Key {
	return Key{ns + resourcePrefix + EscapeName(resource), skConfig}
}

func systemLimitsKey(ns string) Key { return Key{systemPK(ns), skConfig} }

const bucketPrefix = "/BUCKET#"

// BucketKey returns the key of one shard, 0 to [MaxShards]-1, of a bucket in the namespace with an id.
// The variant and the window stand behind the resource, as limiter.BucketKey.VariantText writes them,
// unless there is neither.
func BucketKey(ns string, of limiter.BucketKey, shard int) Key {
	return Key{ns + bucketPrefix + EscapeName(of.Entity) + "#" + bucketTail(of, shard), skState}
}

func bucketTail(of limiter.BucketKey, shard int) string {
	return EscapeName(of.Resource) + shardTail(of, shard)
}

func shardTail(of limiter.BucketKey, shard int) string {
	text := "#" + strconv.Itoa(shard)
	if of.Variant != 0 || of.Window != (limiter.Window{}) {
		text = "#" + of.VariantText() + text
	}
	return text
}

// windowOf returns the window of the bucket that a key is of.
func windowOf(k Key) limiter.Window {
	var of limiter.BucketKey
	_, rest, _ := strings.Cut(k.PK, bucketPrefix)
	if parts := strings.Split(rest, "#"); len(parts) == 4 && of.ParseVariant(parts[2]) == nil {
		return of.Window
	}
	return limiter.Window{}
}

// ShardKey returns the key of a shard of the bucket that another shard's key is of.
func ShardKey(k Key, index int) Key {
	return Key{k.PK[:strings.LastIndexByte(k.PK, '#')+1] + strconv.Itoa(index), k.SK}
}

// AuditKey returns the key of an audit event of a subject, which is in the form of
// [AuditSubject].
func AuditKey(ns, subject, id string) Key { return Key{AuditPK(ns, subject), skAuditPrefix + id} }

// GenerationKey returns the key of the counter of a namespace's changes.
func GenerationKey(ns string) Key { return Key{systemPK(ns), skGeneration} }

// ConfigurationKey returns the key of the item that replicas watch: it has the counter of
// configurations, and the counter of changes once more. Nothing else has its partition key, so
// that a policy can allow to raise the one counter and nothing besides.
func ConfigurationKey(ns string) Key { return Key{ns + "/CONFIGURATION#", skGeneration} }

// ChangeKey returns the key of the record of one change. Keys sort as generations do.
func ChangeKey(ns string, generation uint64) Key {
	return Key{systemPK(ns), fmt.Sprintf("%s%020d", skChangePrefix, generation)}
}

const (
	markPrefix = "/SETTLED#"
	oncePrefix = "/ONCE#"
)

// MarkKey returns the key of the mark of a settled reservation. No id that a mark can have
// is so long that its hash stands here.
func MarkKey(ns, id string) Key { return Key{ns + markPrefix + EscapeName(id), skMark} }

// OnceKey returns the key of the record of an adjustment that is made once.
func OnceKey(ns, once string) Key { return Key{ns + oncePrefix + EscapeName(once), skMark} }

// SecretKey returns the key of a secret. limiter.CheckSecret must allow the name.
func SecretKey(name string) Key { return Key{RegistryNS + "/SECRET#" + name, skSecret} }

// VersionKey returns the key of the record of the table's version.
func VersionKey() Key { return Key{systemPK(RegistryNS), skVersion} }

// NamespaceKey returns the key of the record that gives a namespace's name an id.
func NamespaceKey(name string) Key {
	return Key{systemPK(RegistryNS), skNamespacePrefix + EscapeName(name)}
}

// NamespaceIDKey returns the key of the record that gives an id the name of a namespace.
func NamespaceIDKey(id string) Key { return Key{systemPK(RegistryNS), skNSIDPrefix + id} }

// NamespaceOfKey returns the id of a key of [NamespaceIDKey].
func NamespaceOfKey(k Key) string { return strings.TrimPrefix(k.SK, skNSIDPrefix) }

func childrenPK(ns, id string) string { return ns + "/PARENT#" + EscapeName(id) }

// customLimitsPK returns the partition key in GSI3 of all entities with limits of
// their own for a resource.
func customLimitsPK(ns, resource string) string { return ns + "/ENTITY_CONFIG#" + EscapeName(resource) }

// resourcePK returns one of the [IndexPartitions] partition keys of a resource in GSI2.
func resourcePK(ns, resource string, partition int) string {
	return resourceKeyPK(ns, EscapeName(resource), partition)
}

// resourceKeyPK is resourcePK of a name that has the form of keys.
func resourceKeyPK(ns, resource string, partition int) string {
	return fmt.Sprintf("%s/RESOURCE#%s#%d", ns, resource, partition)
}

// EverythingPK returns one of the [IndexPartitions] partition keys of a namespace in GSI4.
func EverythingPK(ns string, partition int) string { return ns + "#" + strconv.Itoa(partition) }

// IndexPartition spreads items over the partition keys of an index, the same in
// every process and every version of the program.
func IndexPartition(s string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return int(h.Sum32() % IndexPartitions)
}

// disabledPK returns the partition key in GSI2 of all that is disabled: that is little.
func disabledPK(ns string) string { return ns + "/DISABLED#" }

// EntityIndexes returns the index keys of an entity.
func EntityIndexes(ns, entity, parent string) map[string]string {
	keys := NamespaceIndex(ns, EntityKey(ns, entity))
	if parent != "" {
		keys[AttrGSI1PK] = childrenPK(ns, parent)
		keys[AttrGSI1SK] = "CHILD#" + EscapeName(entity)
	}
	return keys
}

// EntityLimitsIndexes returns the index keys of an entity's own limits.
func EntityLimitsIndexes(ns, entity, resource string) map[string]string {
	keys := NamespaceIndex(ns, EntityLimitsKey(ns, entity, resource))
	keys[AttrGSI4SK] = ns + entityLimitsPrefix + EscapeName(entity)
	keys[AttrGSI3PK] = customLimitsPK(ns, resource)
	keys[AttrGSI3SK] = EscapeName(entity)
	return keys
}

// homeOf returns the home, see [Home], of the buckets and the usage of an entity for a resource, by their names in keys.
func homeOf(ns, entity, resource string) int {
	return IndexPartition(ns + bucketPrefix + entity + "#" + resource)
}

// BucketIndexes returns the index keys of a bucket's item.
func BucketIndexes(ns string, of limiter.BucketKey, shard int) map[string]string {
	partition := homeOf(ns, EscapeName(of.Entity), EscapeName(of.Resource))
	keys := map[string]string{AttrGSI4PK: EverythingPK(ns, partition), AttrGSI4SK: BucketKey(ns, of, shard).PK}
	keys[AttrGSI2PK] = resourcePK(ns, of.Resource, partition)
	keys[AttrGSI2SK] = "BUCKET#" + EscapeName(of.Entity) + shardTail(of, shard)
	keys[AttrGSI3PK] = entityPK(ns, of.Entity)
	keys[AttrGSI3SK] = "BUCKET#" + bucketTail(of, shard)
	return keys
}

// NamespaceIndex returns the index keys of the items of a namespace, but for buckets and usage: their partition is
// their home.
func NamespaceIndex(ns string, k Key) map[string]string {
	return map[string]string{AttrGSI4PK: EverythingPK(ns, IndexPartition(k.PK)), AttrGSI4SK: k.PK}
}

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
