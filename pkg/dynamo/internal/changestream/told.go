package changestream

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

var _ aggregator.Standings = (*Stream)(nil)

// Note implements aggregator.Standings by one conditional write.
func (s *Stream) Note(ctx context.Context, of *aggregator.Snapshot, marks []aggregator.Mark, by string) (done bool, now aggregator.Standing, err error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	ns, usage := of.Bucket.Namespace, schema.UsageOf{Entity: of.Bucket.Entity, Resource: of.Bucket.Resource, Window: of.Window, Start: of.Start}
	out, err := s.client.UpdateItem(ctx, schema.NoteTold(s.table, ns, &usage, marks, by))
	if item, refused := awsdb.ConditionItem(err); refused {
		if len(item) == 0 { // it has expired, or was purged
			return false, aggregator.Standing{}, nil
		}
		now, err = schema.ParseStanding(s.table, item)
		return false, now, err
	}
	if err != nil {
		return false, now, fmt.Errorf("%s: %w", usage.Key(ns), translateCall(err))
	}
	now, err = schema.ParseStanding(s.table, out.Attributes)
	return true, now, err
}

// namelessFor is how long the id of a namespace without a readable record is not looked up again.
const namelessFor = time.Minute

// NamespaceName implements aggregator.Standings. It reads all names where it does not have the one that is asked
// for: a namespace is registered before its first bucket is made. One that is gone, or whose record cannot be read, is
// read again after a minute.
func (s *Stream) NamespaceName(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	name, known := s.names[id]
	known = known || s.now().Before(s.nameless[id])
	s.mu.Unlock()
	if known {
		return name, nil
	}
	names, err := s.namespaces(ctx)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.nameless, func(_ string, until time.Time) bool { return !now.Before(until) })
	if names[id] == "" {
		if s.nameless == nil {
			s.nameless = make(map[string]time.Time)
		}
		s.nameless[id] = now.Add(namelessFor)
	}
	s.names = names
	return names[id], nil
}

// namespaces reads the names of all namespaces, by id.
func (s *Stream) namespaces(ctx context.Context) (map[string]string, error) {
	names := make(map[string]string)
	for in := schema.QueryNamespaces(s.table); ; {
		ctx, stop := context.WithTimeout(ctx, callTimeout)
		out, err := s.client.Query(ctx, in)
		stop()
		if err != nil {
			return nil, fmt.Errorf("namespaces of table %s: %w", s.table, translateCall(err))
		}
		for _, item := range out.Items {
			k, keyErr := schema.ItemKey(s.table, item)
			ns, err := schema.ParseNamespace(s.table, k, item)
			if keyErr == nil && err == nil { // else the names of the others are good still
				names[ns.ID] = ns.Title()
			}
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		if len(in.ExclusiveStartKey) == 0 {
			return names, nil
		}
	}
}
