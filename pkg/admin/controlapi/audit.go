package controlapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// auditEndpoints are those of the audit, which a store may not keep.
func auditEndpoints(kept bool) []endpoint {
	return []endpoint{{
		method: http.MethodGet, path: "/v1/namespaces/{namespace}/audit", role: admin.RoleRead, result: api.List[api.AuditEvent]{},
		query: pageParams(
			param{"entity", "only events of this entity and of its limits"},
			param{"resource", "only events of the limits of this resource"},
			param{"system", "true lists only events of the limits of the system and of the namespace itself"},
			param{"principal", "only events of this principal"},
			param{"action", "only events of this action, such as limits.put, or of this kind, such as limits"},
			param{"from", "only events at this time or later, as in RFC 3339"},
			param{"to", "only events before this time, as in RFC 3339"},
		),
		summary: "List the audit events of the namespace, the newest first. A page may have fewer than size, and even none, while there is a next one",
		run:     func(c *call) (any, error) { return listAudit(c, kept) },
	}}
}

func listAudit(c *call, kept bool) (any, error) {
	if !kept {
		return nil, problem(http.StatusNotImplemented, api.Unsupported, "this service keeps no audit: a store in memory has none; serve --data DIR keeps one")
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	f, err := c.auditFilter()
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListEvents(c.ctx(), c.namespace(), f, p)
	if err != nil {
		return nil, err
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

// auditFilter reads which events are listed.
func (c *call) auditFilter() (f limiter.AuditFilter, err error) {
	if f.Subject, err = c.auditSubject(); err != nil {
		return f, err
	}
	f.Principal, f.Action = c.query.Get("principal"), c.query.Get("action")
	if err := checkAction(f.Action); err != nil {
		return f, err
	}
	if f.From, err = c.time("from"); err != nil {
		return f, err
	}
	f.To, err = c.time("to")
	if err == nil && !f.To.IsZero() && f.To.Before(f.From) {
		err = invalid("the time ends at %s, before it begins at %s", f.To.Format(time.RFC3339), f.From.Format(time.RFC3339))
	}
	return f, err
}

// auditSubject reads the subject of the events; nil = all.
func (c *call) auditSubject() (*limiter.Ref, error) {
	system, err := c.flag("system")
	if err != nil {
		return nil, err
	}
	ref, entity, resource := limiter.SystemLimitsRef(), c.query.Get("entity"), c.query.Get("resource")
	switch {
	case entity != "" && resource != "":
		return nil, invalid("give the parameter entity or resource, not both: the audit of an entity has that of all its limits")
	case system && entity+resource != "":
		return nil, invalid("give the parameter system, entity or resource, and not two of them")
	case entity != "":
		ref = limiter.EntityRef(entity)
	case resource != "":
		ref = limiter.ResourceLimitsRef(resource)
	case !system:
		return nil, nil //nolint:nilnil // no subject selects all
	}
	return &ref, nil
}

// checkAction refuses an action that no event has.
func checkAction(action string) error {
	known := limiter.Actions()
	for _, each := range limiter.Actions() {
		kind, _, _ := strings.Cut(each, ".")
		if action == "" || each == action || kind == action {
			return nil
		}
		if !slices.Contains(known, kind) {
			known = append(known, kind)
		}
	}
	return invalid("there is no action %.100q%s", action, didYouMean(action, known))
}

// AuditEvent returns an event in the form of the API.
func AuditEvent(e *limiter.AuditEvent) (api.AuditEvent, error) {
	out := api.AuditEvent{ID: e.ID, Time: e.Time, Principal: e.Principal, Action: e.Action, Detail: e.Detail, Reason: e.Reason}
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
		return json.Marshal(disabledOf(ref, r))
	default:
		return json.Marshal(limitsOf(ref, r))
	}
}
