package limiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// operatorPatience is how long an operator waits for a busy store at least, where a decision would be late.
const operatorPatience = time.Second

// Effective returns the limits of the ordinary bucket of an entity for a resource, by name, as decisions
// merge them. It takes nothing, and reads no bucket. An entity or a resource that nothing is stored for
// shows the limits of all others. Each change takes the place of the record of its ref, so that its effect is seen.
// Effective fails with [ErrUnavailable] where the store does not answer within a second, or the time of a decision where that is longer.
func (l *Limiter) Effective(ctx context.Context, now time.Time, namespace, entity, resource string, changes ...Stored) ([]EffectiveLimit, error) {
	if !l.local {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(l.timeout, operatorPatience))
		defer cancel()
	}
	req := &Request{Namespace: namespace, Takes: []Take{{Entity: entity, Resource: resource}}}
	var d Decision
	d.reset()
	sc := &d.scratch
	sc.addLevel(0, 0, entity)
	if _, err := l.readLevels(ctx, now, req, sc, 0, 1); err != nil {
		return nil, err
	}
	if sc.late || sc.unread {
		return nil, fmt.Errorf("%w: stored limits were not read in time", ErrUnavailable)
	}
	for _, change := range changes {
		for i, ref := range sc.refs {
			if ref == change.Ref {
				sc.records[i] = change.Record
			}
		}
	}
	lv := &sc.levels[0]
	l.merges.level(l.snapshotOf(req), &req.Takes[0], lv, sc.records, &sc.places)
	out := lv.ordinary.all()
	slices.SortFunc(out, func(a, b EffectiveLimit) int { return strings.Compare(a.Limit.Name, b.Limit.Name) })
	for i := range out {
		if out[i].Source == SourcePlan {
			out[i].Plan = lv.plan
		}
	}
	return out, nil
}
