package storetest

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func brokenSettlements() []broken {
	return []broken{
		{"lets everybody settle", remarking(func(m *limiter.Mark) { m.Owner = "o" }), []string{"settle/the first wins", "settle/one of many at once", "settle/names", "settle/a clock that runs backwards"}},
		{"forgets the owner", func(r *reference) limiter.Store { return &ownerless{reference: r} }, []string{"settle/the first wins", "settle/names"}},
		{"checks for a mark, then makes it", func(r *reference) limiter.Store { return &marksLate{reference: r, marked: make(map[string]bool)} }, []string{"settle/one of many at once"}},
		{"has one namespace for marks", remarking(func(m *limiter.Mark) { m.Namespace = "" }), []string{"settle/names"}},
		{"joins namespace and id", remarking(func(m *limiter.Mark) { m.ID, m.Namespace = m.Namespace+m.ID, "" }), []string{"settle/names"}},
		{"mends ids that are not UTF-8", remarking(func(m *limiter.Mark) { m.ID = strings.ToValidUTF8(m.ID, "\ufffd") }), []string{"settle/names"}},
		{"folds case of owners", remarking(func(m *limiter.Mark) { m.Owner = strings.ToLower(m.Owner) }), []string{"settle/the first wins", "settle/names"}},
		{"cuts ids that are too long", remarking(func(m *limiter.Mark) { m.ID = m.ID[:min(len(m.ID), limiter.MaxMarkLength)] }), []string{"settle/refusals"}},
		{"takes an empty owner", remarking(func(m *limiter.Mark) { m.Owner = "o" + m.Owner[:min(len(m.Owner), limiter.MaxMarkLength-1)] }), []string{"settle/refusals"}},
		{"settles an expired reservation", remarking(func(m *limiter.Mark) { m.Expires = m.Expires.AddDate(1, 0, 0) }), []string{"settle/expiry"}},
		{"drops expired marks", func(r *reference) limiter.Store { return forgetsMarks{r} }, []string{"settle/a clock that runs backwards"}},
		{"marks before it checks the context", func(r *reference) limiter.Store { return marksDeaf{r} }, []string{"settle/context done"}},
		{"keeps the caller's owner", func(r *reference) limiter.Store { return sharesOwner{r} }, []string{"settle/memory of the caller"}},
		{"lets the last secret stay", func(r *reference) limiter.Store { return lastSecret{r} }, []string{"secret/the first stays", "secret/many at once"}},
		{"shares the candidate's memory", func(r *reference) limiter.Store { return sharesSecret{r} }, []string{"secret/the first stays"}},
		{"takes any secret", func(r *reference) limiter.Store { return anySecret{r} }, []string{"secret/refusals"}},
	}
}

// remarked is a store that confuses marks.
type remarked struct {
	*reference
	change func(*limiter.Mark)
}

func remarking(change func(*limiter.Mark)) func(*reference) limiter.Store {
	return func(r *reference) limiter.Store { return remarked{r, change} }
}

func (s remarked) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	s.change(&m)
	return s.reference.Settle(ctx, now, m)
}

// ownerless stores marks without owners.
type ownerless struct {
	*reference
	calls int
}

func (s *ownerless) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	s.calls++
	m.Owner = strings.Repeat("o", 1+s.calls%limiter.MaxMarkLength)
	return s.reference.Settle(ctx, now, m)
}

type marksLate struct {
	*reference
	looking sync.Mutex
	marked  map[string]bool
}

func (s *marksLate) Settle(_ context.Context, _ time.Time, m limiter.Mark) (bool, error) {
	s.looking.Lock()
	marked := s.marked[m.ID]
	s.looking.Unlock()
	runtime.Gosched()
	s.looking.Lock()
	defer s.looking.Unlock()
	s.marked[m.ID] = true
	return !marked, nil
}

type forgetsMarks struct{ *reference }

func (s forgetsMarks) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	won, err := s.reference.Settle(ctx, now, m)
	if !now.Before(m.Expires) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.marks, markKey{m.Namespace, m.ID})
	}
	return won, err
}

type marksDeaf struct{ *reference }

func (s marksDeaf) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	if won, err := s.reference.Settle(context.WithoutCancel(ctx), now, m); err != nil {
		return won, err
	}
	return s.reference.Settle(ctx, now, m)
}

type sharesOwner struct{ *reference }

func (s sharesOwner) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	won, err := s.reference.Settle(ctx, now, m)
	if won {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.marks[markKey{strings.Clone(m.Namespace), strings.Clone(m.ID)}] = m.Owner
	}
	return won, err
}

type lastSecret struct{ *reference }

func (s lastSecret) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	if err := limiter.CheckSecret(name, candidate); err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.secrets, name)
	s.mu.Unlock()
	return s.reference.Secret(ctx, name, candidate)
}

type sharesSecret struct{ *reference }

func (s sharesSecret) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	secret, err := s.reference.Secret(ctx, name, candidate)
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(secret) == string(candidate) {
		s.secrets[name] = candidate
	}
	return secret, err
}

type anySecret struct{ *reference }

func (s anySecret) Secret(_ context.Context, name string, candidate []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.secrets[name]; !found {
		s.secrets[name] = candidate
	}
	return s.secrets[name], nil
}
