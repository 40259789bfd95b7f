package controlapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

const limitsPath = namespacePath + "/limits"

func limitsLevels() []limitsLevel {
	return []limitsLevel{
		{limitsPath + "/system", "of the system", func(*http.Request) limiter.Ref { return limiter.SystemLimitsRef() }},
		{limitsPath + "/resources/{resource}", "of a resource", func(r *http.Request) limiter.Ref {
			return limiter.ResourceLimitsRef(r.PathValue("resource"))
		}},
		{limitsPath + "/entities/{entity}/{resource}", "of an entity for a resource; _default_ stands for every other resource", func(r *http.Request) limiter.Ref {
			return limiter.EntityLimitsRef(r.PathValue("entity"), r.PathValue("resource"))
		}},
	}
}

func (a *API) limitsEndpoints() []endpoint {
	list := endpoint{
		method: http.MethodGet, path: limitsPath, role: admin.RoleRead, result: api.List[api.Limits]{},
		query:   pageParams(param{"entity", "only limits of this entity"}, param{"resource", "only limits for this resource"}, param{"entities", "true lists the limits of entities, and no others"}),
		summary: "List stored limits of every level", run: listLimits,
	}
	var levels []endpoint
	for _, level := range limitsLevels() {
		levels = append(levels, a.levelEndpoints(level)...)
	}
	effective := endpoint{
		method: http.MethodGet, path: limitsPath + "/effective", role: admin.RoleRead, result: api.List[api.EffectiveLimit]{},
		query:   []param{{"entity", "the entity; without it one that has no limits of its own"}, {"resource", "the resource; without it one that has no limits of its own"}},
		summary: "List the limits that decide for an entity and a resource, each with the level that it is from", run: a.effective,
	}
	return append(levels, list, effective)
}

func (a *API) levelEndpoints(level limitsLevel) []endpoint {
	return []endpoint{
		{
			method: http.MethodGet, path: level.path, role: admin.RoleRead, result: api.Limits{},
			summary: "Read the limits " + level.of,
			run:     func(c *call) (any, error) { return getLimits(c, level.ref(c.r)) },
		},
		{
			method: http.MethodPut, path: level.path, role: admin.RoleAdminister, result: api.LimitsChange{}, body: api.Limits{},
			query:   changeParams(allowNew(api.NewNamespace, api.NewEntity, api.NewResource, api.NewLimit)),
			summary: "Create or replace the limits " + level.of,
			run:     func(c *call) (any, error) { return a.putLimits(c, level.ref(c.r)) },
		},
		{
			method: http.MethodDelete, path: level.path, role: admin.RoleAdminister, result: api.LimitsChange{},
			query:   changeParams(),
			summary: "Delete the limits " + level.of,
			run:     func(c *call) (any, error) { return a.deleteLimits(c, level.ref(c.r)) },
		},
	}
}

func listLimits(c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	f := limiter.LimitsFilter{Entity: c.query.Get("entity"), Resource: c.query.Get("resource")}
	if f.Entities, err = c.flag("entities"); err != nil {
		return nil, err
	}
	page, err := c.store.ListLimits(c.ctx(), c.namespace(), f, p)
	return listOf(page, err, func(s *limiter.Stored) api.Limits { return *limitsOf(s.Ref, s.Record) })
}

func getLimits(c *call, ref limiter.Ref) (any, error) {
	r, err := c.get(ref)
	if err == nil && !r.Stored() {
		err = noLimits(c, ref)
	}
	if err != nil {
		return nil, err
	}
	return limitsOf(ref, r), nil
}

func noLimits(c *call, ref limiter.Ref) error {
	return notFound("no limits of %s are stored in namespace %s; those of the configuration file are not listed here", subjectOf(ref), api.Name(c.namespace()))
}

// subjectOf names the owner of the limits of ref.
func subjectOf(ref limiter.Ref) string {
	switch ref.Kind {
	case limiter.RefResourceLimits:
		return "resource " + api.Name(ref.Resource).String()
	case limiter.RefSystemLimits:
		return "the system"
	case limiter.RefEntity, limiter.RefEntityLimits:
	}
	return "entity " + api.Name(ref.Entity).String() + " for resource " + api.Name(ref.Resource).String()
}

func (a *API) putLimits(c *call, ref limiter.Ref) (any, error) {
	var body api.Limits
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := sameLimits(&body, ref); err != nil {
		return nil, err
	}
	after, err := recordOf(&body)
	if err != nil {
		return nil, err
	}
	if after.Empty() {
		return nil, invalid("the member limits has no limit: use DELETE to have none")
	}
	if err := checkNotKind(ref.Entity); err != nil {
		return nil, err
	}
	if err := a.checkNewLimits(c, ref, after.Limits); err != nil {
		return nil, err
	}
	if err := a.checkRoom(c, ref, after); err != nil {
		return nil, err
	}
	after.Disabled = body.Disabled
	done, dry, err := c.edit(ref, after, body.ETag)
	if err != nil {
		return nil, err
	}
	return a.limitsChange(c, ref, done, dry)
}

// checkNewLimits refuses new names of limits that are probably mistakes.
func (a *API) checkNewLimits(c *call, ref limiter.Ref, limits *limiter.Limits) error {
	if err := a.newNames().checkNamespace(c); err != nil {
		return err
	}
	if err := a.checkNames(c, ref, limits); err != nil {
		return err
	}
	return a.newNames().checkLimitsOwner(c, ref)
}

// sameLimits refuses a body whose members name other limits than the path.
func sameLimits(body *api.Limits, ref limiter.Ref) error {
	want := limitsOf(ref, limiter.Record{})
	switch {
	case ref.Kind == limiter.RefResourceLimits && ref.Resource == limiter.DefaultResource:
		return invalid("%s stands for every other resource of an entity, and is none itself: name an entity, or set the limits of the system", limiter.DefaultResource)
	case body.Level != "" && body.Level != want.Level:
		return invalid("the member level is %.100q; the path says %s", body.Level, want.Level)
	case body.Entity != nil && (want.Entity == nil || *body.Entity != *want.Entity):
		return invalid("the member entity is %s; the path says %s", *body.Entity, subjectOf(ref))
	case body.Resource != nil && (want.Resource == nil || *body.Resource != *want.Resource):
		return invalid("the member resource is %s; the path says %s", *body.Resource, subjectOf(ref))
	}
	return nil
}

// recordOf returns the record for a body.
func recordOf(body *api.Limits) (limiter.Record, error) {
	r := limiter.Record{Alone: body.Inherit != nil && !*body.Inherit}
	switch body.OnUnavailable {
	case "":
	case limiter.Allow.String():
		r.OnUnavailable = limiter.Allow
	case limiter.Deny.String():
		r.OnUnavailable = limiter.Deny
	case limiter.Local.String():
		r.OnUnavailable = limiter.Local
	default:
		return r, invalid("the member on_unavailable is %.100q; it must be allow, deny or local", body.OnUnavailable)
	}
	all := make([]limiter.Limit, 0, len(body.Limits))
	var budgets []limiter.Budget
	for _, name := range slices.Sorted(maps.Keys(body.Limits)) {
		l, err := limitOf(name, body.Limits[name])
		if err != nil {
			return r, err
		}
		all = append(all, l)
		if budgets, err = appendBudgets(budgets, l, body.Limits[name].Budget); err != nil {
			return r, err
		}
	}
	var err error
	if r.Limits, err = limiter.NewLimits(all...); err == nil {
		r.Budgets, err = limiter.NewBudgets(budgets...)
	}
	return r, err
}

// appendBudgets appends the budgets of a limit in a body.
func appendBudgets(all []limiter.Budget, of limiter.Limit, in map[api.Window]int64) ([]limiter.Budget, error) {
	switch {
	case in == nil:
		return all, nil
	case len(in) == 0:
		return all, invalid("limit %s: the member budget is empty; it needs hour, day or month, such as {\"month\": 50000000}", of.Name)
	case of.Unlimited:
		return all, invalid("limit %s: usage of an unlimited one is not counted: leave budget out, or give a high rate, such as 1000000000/second", of.Name)
	}
	for _, window := range slices.Sorted(maps.Keys(in)) {
		w, err := limiter.ParseUsageWindow(string(window))
		if err != nil {
			return all, invalid("limit %s: the window of a budget is %.100q; it must be hour, day or month", of.Name, window)
		}
		b := limiter.Budget{Limit: of.Name, Window: w, Tokens: in[window]}
		if err := b.Check(); err != nil {
			return all, err
		}
		all = append(all, b)
	}
	return all, nil
}

// limitOf returns the limit for a body.
func limitOf(name string, in api.Limit) (limiter.Limit, error) {
	if err := limiter.ValidateLimitName(name); err != nil {
		return limiter.Limit{}, err
	}
	if in.Dollars && !money.Is(name) {
		return limiter.Limit{}, invalid("limit %s %s", name, money.NotMoney(name))
	}
	l, err := config.ParseRate(in.Rate)
	switch {
	case err != nil:
		return l, invalid("limit %s: %v", name, err)
	case l.Unlimited && (in.Burst != 0 || in.MaxDebt != nil):
		return l, invalid("limit %s: an unlimited one has neither burst nor max_debt", name)
	case l.AdmitsNothing() && (in.Burst != 0 || in.MaxDebt != nil):
		return l, invalid("limit %s: a rate of 0 admits nothing, and has neither burst nor max_debt", name)
	case l.IsInFlight() && (in.Burst != 0 || in.MaxDebt != nil || len(in.Budget) > 0):
		return l, invalid("limit %s: a limit in flight has neither burst nor max_debt nor budget", name)
	case l.IsQuota() && in.Burst != 0:
		return l, invalid("limit %s: a quota is the most of its window, and has no burst", name)
	case in.Burst < 0 || in.MaxDebt != nil && *in.MaxDebt < 0:
		return l, invalid("limit %s: burst and max_debt are numbers of tokens, 0 or more", name)
	}
	l.Name = name
	if in.Burst > 0 {
		l.Capacity = in.Burst
	}
	if in.MaxDebt != nil {
		l.MaxDebt = *in.MaxDebt
		l.MaxDebt = cmp.Or(l.MaxDebt, limiter.NoDebt)
	}
	return l, l.Validate()
}

func (a *API) deleteLimits(c *call, ref limiter.Ref) (any, error) {
	if err := a.checkRoom(c, ref, limiter.Record{}); err != nil { // limits that stand alone have hidden others
		return nil, err
	}
	done, dry, err := c.edit(ref, limiter.Record{}, "")
	if err == nil && !done.Changed {
		err = noLimits(c, ref)
	}
	if err != nil {
		return nil, err
	}
	return a.limitsChange(c, ref, done, dry)
}

// limitsOf returns the limits of a record as JSON.
func limitsOf(ref limiter.Ref, r limiter.Record) *api.Limits {
	out := &api.Limits{Limits: LimitsJSON(r.Limits, r.Budgets), OnUnavailable: r.OnUnavailable.String(), Disabled: r.Disabled, ETag: etagOf(r)}
	out.Level, out.Entity, out.Resource = levelOf(ref)
	if inherit := false; r.Alone {
		out.Inherit = &inherit
	}
	return out
}
