package limiter

import (
	"context"
	"time"
)

// LevelOf returns the level whose limits apply to the ordinary bucket of an entity for a resource,
// as in a decision. It takes nothing, and reads no bucket.
func (l *Limiter) LevelOf(ctx context.Context, now time.Time, namespace, entity, resource string) (Source, error) {
	if !l.local {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	var d Decision
	d.reset()
	if err := l.resolve(ctx, now, &Request{Namespace: namespace, Takes: []Take{{Entity: entity, Resource: resource}}}, &d); err != nil {
		return SourceNone, err
	}
	return d.scratch.levels[0].source, nil
}
