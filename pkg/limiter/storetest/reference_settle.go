package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Settle implements limiter.Store. Marks are kept forever.
func (r *reference) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return false, err
	}
	if err := limiter.CheckMark(m); err != nil {
		return false, err
	}
	if !now.Before(m.Expires) {
		return false, nil
	}
	owner, found := r.marks[markKey{m.Namespace, m.ID}]
	if !found {
		owner = strings.Clone(m.Owner)
		r.marks[markKey{strings.Clone(m.Namespace), strings.Clone(m.ID)}] = owner
	}
	return owner == m.Owner, nil
}

// Secret implements limiter.Store.
func (r *reference) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return nil, err
	}
	if err := limiter.CheckSecret(name, candidate); err != nil {
		return nil, err
	}
	if _, found := r.secrets[name]; !found {
		r.secrets[strings.Clone(name)] = slices.Clone(candidate)
	}
	return r.secrets[name], nil
}
