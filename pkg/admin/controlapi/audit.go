package controlapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func (a *API) auditEndpoints() []endpoint {
	return []endpoint{{
		method: http.MethodGet, path: "/v1/namespaces/{namespace}/audit", role: admin.RoleRead, result: api.List[api.AuditEvent]{},
		query: pageParams(
			param{"entity", "events of this entity and of its limits"},
			param{"resource", "events of the limits of this resource"},
			param{"from", "only events at this time or later, as in RFC 3339"},
			param{"to", "only events before this time, as in RFC 3339"},
		),
		summary: "List the audit events of an entity, of a resource, or of the system without either; the newest first",
		run:     a.listAudit,
	}}
}

func (a *API) listAudit(c *call) (any, error) {
	if !a.cfg.Status.Can.Audit {
		return nil, problem(http.StatusNotImplemented, api.Unsupported, "this service keeps no audit: a store in memory has none; serve --data DIR keeps one")
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	subject, err := c.auditSubject()
	if err != nil {
		return nil, err
	}
	from, err := c.auditTimes(&p)
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListEvents(c.ctx(), c.namespace(), subject, p)
	if err != nil {
		return nil, err
	}
	if first := slices.IndexFunc(page.Items, func(e limiter.AuditEvent) bool { return e.Time.Before(from) }); first >= 0 {
		page.Items, page.Next = page.Items[:first], "" // the rest is older
	}
	list := api.List[api.AuditEvent]{Items: make([]api.AuditEvent, 0, len(page.Items)), Next: page.Next}
	for i := range page.Items {
		e, err := AuditEvent(&page.Items[i])
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, e)
	}
	return list, nil
}

// auditSubject reads the subject of the events.
func (c *call) auditSubject() (limiter.Ref, error) {
	switch entity, resource := c.query.Get("entity"), c.query.Get("resource"); {
	case entity != "" && resource != "":
		return limiter.Ref{}, invalid("give the parameter entity or resource, not both: the audit of an entity has that of all its limits")
	case entity != "":
		return limiter.EntityRef(entity), nil
	case resource != "":
		return limiter.ResourceLimitsRef(resource), nil
	}
	return limiter.SystemLimitsRef(), nil
}

// auditTimes reads the time of the events. It moves the page to the end of the time, and returns
// the beginning.
func (c *call) auditTimes(p *limiter.Page) (from time.Time, err error) {
	from, err = c.time("from")
	if err != nil {
		return from, err
	}
	to, err := c.time("to")
	switch {
	case err != nil || to.IsZero():
		return from, err
	case to.Before(from):
		return from, invalid("the time ends at %s, before it begins at %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	}
	end := limiter.AuditID(to.Add(time.Millisecond-1), 0) // events have whole milliseconds
	if p.After == "" || p.After > end {
		p.After = end
	}
	return from, nil
}

// AuditEvent returns an event in the form of the API.
func AuditEvent(e *limiter.AuditEvent) (api.AuditEvent, error) {
	out := api.AuditEvent{ID: e.ID, Time: e.Time, Principal: e.Principal, Action: e.Action, Detail: e.Detail}
	out.Level, out.Entity, out.Resource = levelOf(e.Subject)
	var err error
	if out.Before, err = recordJSON(e.Subject, e.Before); err == nil {
		out.After, err = recordJSON(e.Subject, e.After)
	}
	return out, err
}

// recordJSON returns the resource of a record; nil for an empty one.
func recordJSON(ref limiter.Ref, r limiter.Record) (json.RawMessage, error) {
	switch {
	case r.Empty():
		return nil, nil
	case r.Entity != nil:
		return json.Marshal(entityOf(r))
	case !r.Stored():
		return json.Marshal(disabledOf(ref, true))
	default:
		return json.Marshal(limitsOf(ref, r))
	}
}
