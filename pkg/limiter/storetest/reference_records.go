package storetest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

type recordKey struct {
	namespace string
	ref       limiter.Ref
}

// refRecords are the records of all namespaces, and their history. The store's mutex protects them.
type refRecords struct {
	records    map[recordKey]limiter.Record
	names      map[string]bool // of namespaces that were changed
	events     []eventIn
	generation uint64 // of every namespace
	subscriber func(limiter.Change)
}

// checkChain refuses an entity that would be its own ancestor or have too many.
func (r *refRecords) checkChain(namespace string, e limiter.Entity) error {
	chain := []string{e.ID}
	for next := e.Parent; next != ""; {
		chain = append(chain, next)
		if next == e.ID || len(chain) > limiter.MaxLevels {
			return fmt.Errorf("%w: the chain %q is a cycle or longer than %d", limiter.ErrInvalid, chain, limiter.MaxLevels)
		}
		parent := r.records[recordKey{namespace, limiter.EntityRef(next)}].Entity
		if parent == nil {
			return nil
		}
		next = parent.Parent
	}
	return nil
}

// changed raises the generation and calls the subscriber.
func (r *refRecords) changed(namespace string, refs ...limiter.Ref) {
	r.generation++
	if r.subscriber != nil {
		r.subscriber(limiter.Change{Namespace: namespace, Generation: r.generation, Refs: refs})
	}
}

// eventIn is an audit event of a namespace.
type eventIn struct {
	namespace string
	limiter.AuditEvent
}

// limitsOf returns the refs of the limits of an entity.
func (r *refRecords) limitsOf(namespace, entity string) (refs []limiter.Ref) {
	for key := range r.records {
		if key.namespace == namespace && key.ref.Kind == limiter.RefEntityLimits && key.ref.Entity == entity {
			refs = append(refs, key.ref)
		}
	}
	return refs
}

// version returns the entity to store in place of the one before.
func (r *refRecords) version(now time.Time, before limiter.Record, e limiter.Entity) *limiter.Entity {
	e.ID, e.Name, e.Parent, e.Metadata = strings.Clone(e.ID), strings.Clone(e.Name), strings.Clone(e.Parent), maps.Clone(e.Metadata)
	e.CreatedAt, e.Version = now, r.generation+1
	if before.Entity != nil {
		e.CreatedAt = before.Entity.CreatedAt
	}
	return &e
}

// audit stores the event of a change that was applied.
func (r *refRecords) audit(ctx context.Context, now time.Time, namespace, action string, subject limiter.Ref, done limiter.Edited) {
	r.events = append(r.events, eventIn{namespace, limiter.AuditEvent{
		ID: limiter.AuditID(now, r.generation), Time: now.UTC(), Principal: limiter.PrincipalFrom(ctx), Reason: limiter.ReasonFrom(ctx), Action: action,
		Subject: subject, Generation: r.generation, Before: done.Before, After: done.After,
	}})
}

// used returns the names of the namespaces that were ever in use.
func (r *refRecords) used(buckets refBuckets) map[string]bool {
	names := maps.Clone(r.names)
	for key := range buckets {
		names[key.Namespace] = true
	}
	return names
}

func (r *refRecords) namespace(name string) limiter.Namespace {
	record := r.records[recordKey{name, limiter.SystemLimitsRef()}]
	return limiter.Namespace{Name: name, State: record.State, Since: record.Since, Disabled: record.Disabled}
}

type markKey struct{ namespace, id string }
