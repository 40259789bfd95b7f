package migration

import (
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// kind is a kind of items.
type kind uint8

const (
	unknown kind = iota
	entity
	entityLimits
	resourceLimits
	systemLimits
	bucket    // of schema 0.9.0 and later
	oldBucket // of schema 0.8.0
	registry  // of a namespace, by its id
	usage
	audit
	bookkeeping // of the package itself: versions, registers of names, operations
)

// key is a primary key, taken apart.
type key struct {
	namespace        string // id; "" = of a table without namespaces
	kind             kind
	entity, resource string
	shard            int
}

// registryNamespace is the id of the namespace of the package itself.
const registryNamespace = "_"

// parseKey takes a primary key apart. A key of no known form is of kind unknown.
func parseKey(pk, sk string) key {
	var k key
	rest := pk
	if ns, behind, found := strings.Cut(pk, "/"); found && ns != "" && !strings.Contains(ns, "#") {
		k.namespace, rest = ns, behind
	}
	subject, name, found := strings.Cut(rest, "#")
	if !found {
		return key{}
	}
	switch subject {
	case "ENTITY":
		k.ofEntity(name, sk)
	case "RESOURCE":
		k.resource = name
		if sk == "#CONFIG" && name != "" {
			k.kind = resourceLimits
		}
	case "SYSTEM":
		k.ofSystem(sk)
	case "BUCKET":
		k.ofBucket(name, sk)
	case "AUDIT":
		k.kind = audit
	}
	return k
}

// limitsRef returns the record of limits that the key stands for.
func (k *key) limitsRef() limiter.Ref {
	switch {
	case k.entity != "":
		return limiter.EntityLimitsRef(k.entity, k.resource)
	case k.resource != "":
		return limiter.ResourceLimitsRef(k.resource)
	default:
		return limiter.SystemLimitsRef()
	}
}

func (k *key) ofEntity(name, sk string) {
	k.entity = name
	if name == "" {
		return
	}
	subject, rest, _ := strings.Cut(strings.TrimPrefix(sk, "#"), "#")
	switch {
	case sk == "#META":
		k.kind = entity
	case subject == "CONFIG" && rest != "":
		k.kind, k.resource = entityLimits, rest
	case subject == "BUCKET" && rest != "":
		k.kind, k.resource = oldBucket, rest
	case subject == "USAGE":
		k.kind = usage
	case subject == "RESOURCE":
		k.kind = bookkeeping
	}
}

func (k *key) ofSystem(sk string) {
	id, isRegistry := strings.CutPrefix(sk, "#NSID#")
	switch {
	case isRegistry && k.namespace == registryNamespace:
		k.kind, k.namespace = registry, id
	case sk == "#CONFIG" && k.namespace != registryNamespace:
		k.kind = systemLimits
	default:
		k.kind = bookkeeping
	}
}

func (k *key) ofBucket(name, sk string) {
	parts := strings.Split(name, "#") // no name has a '#'
	if strings.HasPrefix(sk, "#OP#") {
		k.kind = bookkeeping
		return
	}
	if sk != "#STATE" || len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return
	}
	shard, err := strconv.Atoi(parts[2])
	if err != nil || shard < 0 {
		return
	}
	k.kind, k.entity, k.resource, k.shard = bucket, parts[0], parts[1], shard
}
