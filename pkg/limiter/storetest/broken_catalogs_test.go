package storetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func brokenLives() []broken {
	return []broken{
		{"ignores the context", func(r *reference) limiter.Store { return deaf{r} }, []string{"context/canceled", "context/deadline exceeded"}},
		{"stays open", func(r *reference) limiter.Store { return open{r} }, []string{"close/every method", "close/while callers call"}},
		{"fails to close twice", func(r *reference) limiter.Store { return closesOnce{r} }, []string{"close/every method"}},
	}
}

func brokenCatalogs() []broken {
	return []broken{
		{"forgets fields", func(r *reference) limiter.Store { return forgetful{r} }, []string{"entity/stored as given", "lockstep/catalog"}},
		{"lets the last writer win", func(r *reference) limiter.Store { return lastWins{r} }, []string{"entity/versions", "entity/one of many writers wins", "lockstep/catalog"}},
		{"ignores the chain", func(r *reference) limiter.Store { return chainless{r} }, []string{"entity/cycles", "entity/levels"}},
		{"keeps the limits of a deleted entity", func(r *reference) limiter.Store { return leavesLimits{r} }, []string{"entity/delete", "lockstep/catalog"}},
		{"drops the buckets of a deleted entity", func(r *reference) limiter.Store { return dropsBuckets{r} }, []string{"entity/buckets outlive it"}},
		{"shares memory with the caller", func(r *reference) limiter.Store { return sharing{r} }, []string{"entity/memory is not shared"}},
		{"cannot delete limits", func(r *reference) limiter.Store { return keepsLimits{r} }, []string{"records/limits", "records/policy"}},
		{"keeps limits that a record lost", func(r *reference) limiter.Store { return addsLimits{r} }, []string{"records/limits", "limiter/limits merge by name"}},
		{"has no policy", func(r *reference) limiter.Store { return policyless{r} }, []string{"records/policy"}},
		{"keeps old contents of the records", func(r *reference) limiter.Store { return leavesRecords{r} }, []string{"records/reading overwrites"}},
		{"has one generation for ever", func(r *reference) limiter.Store { return timeless{r} }, []string{"records/generation"}},
		{"reads the generation after the records", func(r *reference) limiter.Store { return readsLate{r} }, []string{"records/generation while they change"}},
		{"reads records one by one", func(r *reference) limiter.Store { return readsApart{r} }, []string{"records/generation while they change"}},
		{"calls no subscriber", func(r *reference) limiter.Store { return silent{r} }, []string{"records/subscriber"}},
	}
}

type addsLimits struct{ *reference }

func (s addsLimits) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	var stored [1]limiter.Record
	if _, err := s.Read(ctx, namespace, []limiter.Ref{ref}, stored[:]); err != nil {
		return err
	}
	var all []limiter.Limit
	for i := range r.Limits.Len() {
		all = append(all, r.Limits.At(i))
	}
	for i := range stored[0].Limits.Len() {
		if l := stored[0].Limits.At(i); r.Limits.Find(l.Name) < 0 {
			all = append(all, l)
		}
	}
	var err error
	if r.Limits, err = limiter.NewLimits(all...); err != nil {
		return err
	}
	return s.reference.PutLimits(ctx, namespace, ref, r)
}

type foldingCatalog struct{ *reference }

func fold(ref limiter.Ref) limiter.Ref {
	ref.Entity, ref.Resource = strings.ToLower(ref.Entity), strings.ToLower(ref.Resource)
	return ref
}

func (s foldingCatalog) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	return s.reference.PutLimits(ctx, namespace, fold(ref), r)
}

func (s foldingCatalog) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i] = fold(refs[i])
	}
	return s.reference.Read(ctx, namespace, refs, records)
}

type deaf struct{ *reference }

func (s deaf) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	return s.reference.Take(context.WithoutCancel(ctx), now, ops)
}

func (s deaf) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	return s.reference.Read(context.WithoutCancel(ctx), namespace, refs, records)
}

type open struct{ *reference }

func (open) Close(context.Context) error { return nil }

type closesOnce struct{ *reference }

func (s closesOnce) Close(ctx context.Context) error {
	if _, err := s.Read(ctx, "", nil, nil); err != nil {
		return err
	}
	return s.reference.Close(ctx)
}

type forgetful struct{ *reference }

func (s forgetful) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	e.Name = ""
	return s.reference.PutEntity(ctx, now, namespace, e)
}

type lastWins struct{ *reference }

func (s lastWins) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	for {
		stored, err := s.reference.PutEntity(ctx, now, namespace, e)
		if !errors.Is(err, limiter.ErrConflict) {
			return stored, err
		}
		var r [1]limiter.Record
		if _, err := s.Read(ctx, namespace, []limiter.Ref{limiter.EntityRef(e.ID)}, r[:]); err != nil {
			return stored, err
		}
		e.Version = 0
		if r[0].Entity != nil {
			e.Version = r[0].Entity.Version
		}
	}
}

type chainless struct{ *reference }

func (s chainless) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	stored, err := s.reference.PutEntity(ctx, now, namespace, e)
	if errors.Is(err, limiter.ErrInvalid) && e.ID != "" {
		e.Parent = ""
		return s.reference.PutEntity(ctx, now, namespace, e)
	}
	return stored, err
}

type leavesLimits struct{ *reference }

func (s leavesLimits) DeleteEntity(_ context.Context, namespace, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, recordKey{namespace, limiter.EntityRef(id)})
	return nil
}

type dropsBuckets struct{ *reference }

func (s dropsBuckets) DeleteEntity(ctx context.Context, namespace, id string) error {
	s.mu.Lock()
	for k := range s.buckets {
		if k.Namespace == namespace && k.Entity == id {
			delete(s.buckets, k)
		}
	}
	s.mu.Unlock()
	return s.reference.DeleteEntity(ctx, namespace, id)
}

type sharing struct{ *reference }

func (s sharing) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	stored, err := s.reference.PutEntity(ctx, now, namespace, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.records[recordKey{namespace, limiter.EntityRef(e.ID)}].Entity; err == nil && kept != nil {
		kept.Metadata = e.Metadata
	}
	return stored, err
}

type keepsLimits struct{ *reference }

func (s keepsLimits) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	if r.Empty() {
		return nil
	}
	return s.reference.PutLimits(ctx, namespace, ref, r)
}

type policyless struct{ *reference }

func (s policyless) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	r.OnUnavailable = limiter.Unset
	return s.reference.PutLimits(ctx, namespace, ref, r)
}

type leavesRecords struct{ *reference }

func (s leavesRecords) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	before := slices.Clone(records)
	generation, err := s.reference.Read(ctx, namespace, refs, records)
	for i := range records {
		if records[i].Empty() {
			records[i] = before[i]
		}
	}
	return generation, err
}

type timeless struct{ *reference }

func (timeless) RaiseGeneration(context.Context) error { return nil }

// overtaken waits until the generation has been raised n times, or the writer seems to have ended.
func (r *reference) overtaken(ctx context.Context, generation, n uint64) error {
	for range 100_000 {
		now, err := r.Read(ctx, "", nil, nil)
		if err != nil || now >= generation+n {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

type readsLate struct{ *reference }

func (s readsLate) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	generation, err := s.reference.Read(ctx, namespace, refs, records)
	if err != nil || len(refs) == 0 {
		return generation, err
	}
	if err := s.overtaken(ctx, generation, 2); err != nil {
		return 0, err
	}
	return s.reference.Read(ctx, namespace, nil, nil)
}

type readsApart struct{ *reference }

func (s readsApart) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	generation, err := s.reference.Read(ctx, namespace, nil, nil)
	for i := range refs {
		if err == nil {
			_, err = s.reference.Read(ctx, namespace, refs[i:i+1], records[i:i+1])
		}
		if err == nil && i == 0 {
			err = s.overtaken(ctx, generation, 3)
		}
	}
	return generation, err
}

type silent struct{ *reference }

func (silent) Subscribe(func(limiter.Change)) {}
