package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditing is a store with another ListEvents.
type auditing struct {
	*reference
	list func(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error)
}

func (s auditing) ListEvents(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
	return s.list(ctx, namespace, f, p)
}

// breakFilter breaks ListEvents by a change of its filter.
func breakFilter(change func(*limiter.AuditFilter)) func(*reference) limiter.Store {
	return func(r *reference) limiter.Store {
		return auditing{r, func(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
			change(&f)
			return r.ListEvents(ctx, namespace, f, p)
		}}
	}
}

func brokenAudits() []broken {
	return []broken{
		{"takes no subject for the system", breakFilter(func(f *limiter.AuditFilter) {
			if f.Subject == nil {
				system := limiter.SystemLimitsRef()
				f.Subject = &system
			}
		}), []string{"audit/of all subjects"}},
		{"ignores the principal", breakFilter(func(f *limiter.AuditFilter) { f.Principal = "" }), []string{"audit/filtered"}},
		{"ignores the action", breakFilter(func(f *limiter.AuditFilter) { f.Action = "" }), []string{"audit/filtered"}},
		{"ignores the begin of a time", breakFilter(func(f *limiter.AuditFilter) { f.From = time.Time{} }), []string{"audit/of a time"}},
		{"ignores the end of a time", breakFilter(func(f *limiter.AuditFilter) { f.To = time.Time{} }), []string{"audit/of a time"}},
		{"ends a list at a page without a selected event", func(r *reference) limiter.Store {
			return auditing{r, func(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
				every, err := r.ListEvents(ctx, namespace, limiter.AuditFilter{}, p)
				every.Items = slices.DeleteFunc(slices.Clone(every.Items), func(e limiter.AuditEvent) bool { return !f.Selects(&e) })
				if len(every.Items) == 0 {
					every.Next = ""
				}
				return every, err
			}}
		}, []string{"audit/filtered"}},
		{"lists the oldest of a page first", func(r *reference) limiter.Store {
			return auditing{r, func(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
				page, err := r.ListEvents(ctx, namespace, f, p)
				page.Items = slices.Clone(page.Items)
				slices.Reverse(page.Items)
				return page, err
			}}
		}, []string{"audit/of all subjects"}},
	}
}
