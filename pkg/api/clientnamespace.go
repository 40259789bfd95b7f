package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// NamespaceClient administers one namespace of a service.
type NamespaceClient struct {
	Service *Client // that made it
	path    string
}

// Namespace returns a client for one namespace.
func (c *Client) Namespace(name string) *NamespaceClient {
	return &NamespaceClient{Service: c, path: "/v1/namespaces/" + segment(name)}
}

// segment escapes a name for a path, in which "." and ".." have a meaning.
func segment(name string) string {
	if name == "." || name == ".." {
		return "%2E" + name[1:]
	}
	return url.PathEscape(name)
}

// Entity reads an entity.
func (n *NamespaceClient) Entity(ctx context.Context, id Name) (*Entity, error) {
	return send[Entity](ctx, n.Service, http.MethodGet, entityPath(n.path, id), nil, nil, ClientOptions{})
}

// ListEntities lists entities, or only the children of a parent if it is not empty.
func (n *NamespaceClient) ListEntities(ctx context.Context, parent Name, p Page) (*List[Entity], error) {
	return send[List[Entity]](ctx, n.Service, http.MethodGet, n.path+"/entities", query(p, map[string]string{"parent": string(parent)}), nil, ClientOptions{})
}

// PutEntity creates or replaces an entity. Its ETag, if any, is a condition like Options.IfMatch.
func (n *NamespaceClient) PutEntity(ctx context.Context, e Entity, o ClientOptions) (*EntityChange, error) {
	return send[EntityChange](ctx, n.Service, http.MethodPut, entityPath(n.path, e.ID), nil, e, o)
}

// DeleteEntity deletes an entity and its limits.
func (n *NamespaceClient) DeleteEntity(ctx context.Context, id Name, o ClientOptions) (*Change[Entity], error) {
	return send[Change[Entity]](ctx, n.Service, http.MethodDelete, entityPath(n.path, id), nil, nil, o)
}

// entityPath is the path of an entity below that of its namespace.
func entityPath(namespace string, id Name) string {
	return namespace + "/entities/" + segment(string(id))
}

// LimitsOf identifies limits: of an entity for a resource, of a resource without an entity, or of
// the system without either.
type LimitsOf struct {
	Entity   Name
	Resource Name // "" with an entity = _default_, every resource without limits of its own
}

// limitsPath is the path of limits below that of their namespace.
func limitsPath(namespace string, of LimitsOf) string {
	path := namespace + "/limits"
	switch {
	case of.Entity != "" && of.Resource == "":
		return path + "/entities/" + segment(string(of.Entity)) + "/_default_"
	case of.Entity != "":
		return path + "/entities/" + segment(string(of.Entity)) + "/" + segment(string(of.Resource))
	case of.Resource != "":
		return path + "/resources/" + segment(string(of.Resource))
	}
	return path + "/system"
}

// Limits reads limits.
func (n *NamespaceClient) Limits(ctx context.Context, of LimitsOf) (*Limits, error) {
	return send[Limits](ctx, n.Service, http.MethodGet, limitsPath(n.path, of), nil, nil, ClientOptions{})
}

// Effective lists the limits that decide for an entity and a resource. "" stands for one that has no
// limits of its own.
func (n *NamespaceClient) Effective(ctx context.Context, of LimitsOf) (*List[EffectiveLimit], error) {
	q := url.Values{"entity": {string(of.Entity)}, "resource": {string(of.Resource)}}
	return send[List[EffectiveLimit]](ctx, n.Service, http.MethodGet, n.path+"/limits/effective", q, nil, ClientOptions{})
}

// LimitsFilter selects limits of a list. The zero value selects those of every level.
type LimitsFilter struct {
	Entity   Name // only limits of this entity; "" = all
	Resource Name // only limits for this resource; "" = all
	Entities bool // only limits of entities
}

// ListLimits lists limits.
func (n *NamespaceClient) ListLimits(ctx context.Context, f LimitsFilter, p Page) (*List[Limits], error) {
	params := map[string]string{"entity": string(f.Entity), "resource": string(f.Resource)}
	if f.Entities {
		params["entities"] = "true"
	}
	q := query(p, params)
	return send[List[Limits]](ctx, n.Service, http.MethodGet, n.path+"/limits", q, nil, ClientOptions{})
}

// FileLimits lists the limits of the configuration file, of every place.
func (n *NamespaceClient) FileLimits(ctx context.Context, p Page) (*List[FileLimits], error) {
	return send[List[FileLimits]](ctx, n.Service, http.MethodGet, n.path+"/limits/file", query(p, nil), nil, ClientOptions{})
}

// PutLimits creates or replaces limits.
func (n *NamespaceClient) PutLimits(ctx context.Context, of LimitsOf, l Limits, o ClientOptions) (*LimitsChange, error) {
	return send[LimitsChange](ctx, n.Service, http.MethodPut, limitsPath(n.path, of), nil, l, o)
}

// DeleteLimits deletes limits.
func (n *NamespaceClient) DeleteLimits(ctx context.Context, of LimitsOf, o ClientOptions) (*LimitsChange, error) {
	return send[LimitsChange](ctx, n.Service, http.MethodDelete, limitsPath(n.path, of), nil, nil, o)
}

// AuditOf selects audit events of a namespace. The zero value selects all.
type AuditOf struct {
	Entity    Name      // only events of this entity and of its limits; "" = all
	Resource  Name      // only events of the limits of this resource; "" = all
	System    bool      // only events of the limits of the system and of the namespace itself
	Principal string    // only events of this principal; "" = any
	Action    string    // only events of this action, such as limits.put, or of a kind, such as limits; "" = any
	From, To  time.Time // only events at From or later, and before To; zero = without a bound
}

// ListAudit lists audit events, the newest first. A page may have fewer events than its size, and
// even none, while there is a next one.
func (n *NamespaceClient) ListAudit(ctx context.Context, of AuditOf, p Page) (*List[AuditEvent], error) {
	params := between(of.From, of.To, map[string]string{
		"entity": string(of.Entity), "resource": string(of.Resource), "principal": of.Principal, "action": of.Action,
	})
	if of.System {
		params["system"] = "true"
	}
	return send[List[AuditEvent]](ctx, n.Service, http.MethodGet, n.path+"/audit", query(p, params), nil, ClientOptions{})
}

// ListBuckets lists buckets in use: all, or those of an entity, a resource, or both.
func (n *NamespaceClient) ListBuckets(ctx context.Context, of LimitsOf, p Page) (*List[Bucket], error) {
	q := query(p, map[string]string{"entity": string(of.Entity), "resource": string(of.Resource)})
	return send[List[Bucket]](ctx, n.Service, http.MethodGet, n.path+"/buckets", q, nil, ClientOptions{})
}

// BucketOf identifies a bucket. Without a variant it is the only bucket of the entity for the
// resource, or the only one that has the limit. If there are several, the refusal has them in its
// Choices.
type BucketOf struct {
	Entity, Resource Name
	Limit            string // "" = any
	Variant          string // "" = the only one; OrdinaryVariant = the ordinary one
}

// Bucket reads a bucket: its balances, the origin of its limits, and the time at which each is
// full.
func (n *NamespaceClient) Bucket(ctx context.Context, of BucketOf) (*Bucket, error) {
	q := query(Page{}, map[string]string{"entity": string(of.Entity), "resource": string(of.Resource), "limit": of.Limit, "variant": of.Variant})
	return send[Bucket](ctx, n.Service, http.MethodGet, n.path+"/bucket", q, nil, ClientOptions{})
}

// AdjustBucket changes balances of a bucket. The verb is reset, set, top-up or take-out. Of the
// options DryRun and Reason count.
func (n *NamespaceClient) AdjustBucket(ctx context.Context, verb string, change BucketChange, o ClientOptions) (*Adjusted, error) {
	return send[Adjusted](ctx, n.Service, http.MethodPost, n.path+"/buckets/"+segment(verb), nil, change, ClientOptions{DryRun: o.DryRun, Reason: o.Reason})
}
