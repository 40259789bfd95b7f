package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Record is an entity, or the limits of one level.
type Record struct {
	Ref    limiter.Ref
	Entity *api.Entity // of an entity; else nil
	Limits *api.Limits // of limits; else nil

	file string
	line int
}

// Subject names a record for people.
func Subject(ref limiter.Ref) string {
	entity, resource := api.Name(ref.Entity).String(), api.Name(ref.Resource).String()
	switch {
	case ref.Kind == limiter.RefSystemLimits:
		return "limits of the system"
	case ref.Kind == limiter.RefResourceLimits:
		return "limits of resource " + resource
	case ref.Kind == limiter.RefEntityLimits && ref.Resource == limiter.DefaultResource:
		return "limits of entity " + entity
	case ref.Kind == limiter.RefEntityLimits:
		return "limits of entity " + entity + " for resource " + resource
	}
	return "entity " + entity
}

// keyOf is the name of a record in an inventory.
func keyOf(ref limiter.Ref) string {
	entity, resource := strconv.QuoteToASCII(ref.Entity), strconv.QuoteToASCII(ref.Resource)
	switch ref.Kind {
	case limiter.RefEntityLimits:
		return "limits " + entity + " " + resource
	case limiter.RefResourceLimits:
		return "resource " + resource
	case limiter.RefSystemLimits:
		return "system"
	case limiter.RefEntity:
	}
	return "entity " + entity
}

// refOf is the inverse of keyOf. It fails for a key of another form.
func refOf(key string) (limiter.Ref, error) {
	var ref limiter.Ref
	var entity, resource string
	var err error
	switch {
	case key == "system":
		return limiter.SystemLimitsRef(), nil
	case len(key) > 7 && key[:7] == "entity ":
		_, err = fmt.Sscanf(key, "entity %q", &entity)
		ref = limiter.EntityRef(entity)
	case len(key) > 9 && key[:9] == "resource ":
		_, err = fmt.Sscanf(key, "resource %q", &resource)
		ref = limiter.ResourceLimitsRef(resource)
	default:
		_, err = fmt.Sscanf(key, "limits %q %q", &entity, &resource)
		ref = limiter.EntityLimitsRef(entity, resource)
	}
	if err == nil && keyOf(ref) != key {
		err = strconv.ErrSyntax
	}
	if err != nil {
		return ref, fmt.Errorf("%.100q in an inventory names no record: %w", key, err)
	}
	return ref, nil
}

// limitsOf names the limits of a ref for the client.
func limitsOf(ref limiter.Ref) api.LimitsOf {
	return api.LimitsOf{Entity: api.Name(ref.Entity), Resource: api.Name(ref.Resource)}
}

// ofEntity returns the record of a stored entity.
func ofEntity(e api.Entity) Record {
	return Record{Ref: limiter.EntityRef(string(e.ID)), Entity: &e}
}

// ofLimits returns the record of stored limits.
func ofLimits(l api.Limits) Record {
	ref := limiter.SystemLimitsRef()
	switch {
	case l.Entity != nil && l.Resource != nil:
		ref = limiter.EntityLimitsRef(string(*l.Entity), string(*l.Resource))
	case l.Resource != nil:
		ref = limiter.ResourceLimitsRef(string(*l.Resource))
	}
	return Record{Ref: ref, Limits: &l}
}

// etag is that of a stored record.
func (r Record) etag() string {
	switch {
	case r.Entity != nil:
		return r.Entity.ETag
	case r.Limits != nil:
		return r.Limits.ETag
	}
	return ""
}

// content is the record as a manifest can say it: without the members that the store sets.
func (r Record) content() any {
	switch {
	case r.Entity != nil:
		e := *r.Entity
		e.ETag, e.CreatedAt, e.Disabled, e.PlanUnknown = "", time.Time{}, false, false
		if len(e.Metadata) == 0 {
			e.Metadata = nil
		}
		return e
	case r.Limits != nil:
		l := *r.Limits
		l.ETag, l.Disabled = "", false
		if len(l.Limits) == 0 && l.OnUnavailable == "" { // it is disabled, and has no more
			return nil
		}
		return l
	}
	return nil
}

// digest identifies the content of a record.
func (r Record) digest() (string, error) {
	text, err := json.Marshal(r.content()) // keys of maps are sorted
	if err != nil {
		return "", fmt.Errorf("%s: %w", Subject(r.Ref), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// order sorts records: entities before limits, then the general before the special.
func order(a, b limiter.Ref) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource))
}

func rank(ref limiter.Ref) int {
	switch ref.Kind {
	case limiter.RefSystemLimits:
		return 1
	case limiter.RefResourceLimits:
		return 2
	case limiter.RefEntityLimits:
		return 3
	case limiter.RefEntity:
	}
	return 0
}
