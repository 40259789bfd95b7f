package schema

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of the record of a namespace, which is that of the limits of the system.
const (
	attrState   = "state"    // absent = active
	attrStateAt = "state_at" // since when, Unix ms
)

func markState(item map[string]types.AttributeValue, r limiter.Record) {
	if r.State != limiter.NamespaceActive {
		item[attrState] = &types.AttributeValueMemberS{Value: r.State.String()}
		item[attrStateAt] = NumberAttribute(r.Since.UnixMilli())
	}
}

// state reads the state of a namespace, and since when it is in it.
func (r *Reader) state() (limiter.NamespaceState, time.Time) {
	if _, found := r.Item[attrState]; !found {
		return limiter.NamespaceActive, time.Time{}
	}
	text := r.Text(attrState)
	for _, s := range []limiter.NamespaceState{limiter.NamespaceDeleted, limiter.NamespacePurging, limiter.NamespacePurged} {
		if s.String() == text {
			return s, time.UnixMilli(r.Int(attrStateAt, math.MinInt64, math.MaxInt64)).UTC()
		}
	}
	r.Fail(attrState, "is %.100q; it must be deleted, purging, purged or absent", text)
	return limiter.NamespaceActive, time.Time{}
}

// StillPurging returns the part of a transaction by which it is applied only while a namespace is
// being purged. The purge must be the one that the change of the generation began. It changes
// nothing.
func StillPurging(ns string, generation uint64) *ItemWrite {
	purging := &types.AttributeValueMemberS{Value: limiter.NamespacePurging.String()}
	w := NewUpdate(systemLimitsKey(ns))
	w.Require(attrState, "=", purging)
	w.Require(attrLimitsVersion, "=", NumberAttribute(generation))
	w.Set(attrState, purging)
	return w
}

// PurgedLater reports whether an item of a namespace has to be checked before it is purged: it
// is about the namespace itself, and part of it stays.
func PurgedLater(ns string, k Key) bool {
	return k == systemLimitsKey(ns) || k.PK == AuditPK(ns, SubjectSystem)
}
