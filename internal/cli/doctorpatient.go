package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// patient is an entity that is denied, or not limited.
type patient struct {
	n        *api.NamespaceClient
	d        *diagnosis
	entity   api.Name
	resource api.Name // "" = each
}

// examine says why the entity is denied, or not limited.
func (p *patient) examine(ctx context.Context, can api.Capabilities) error {
	payers, err := p.payers(ctx)
	if err != nil {
		return unreadable(p.d, err)
	}
	steps := []func(context.Context, []api.Name) error{p.disabled, p.limits}
	if can.Buckets {
		steps = append(steps, p.buckets)
	}
	if can.Usage {
		steps = append(steps, p.budgets)
	}
	for _, step := range steps {
		if err := step(ctx, payers); err != nil {
			return unreadable(p.d, err)
		}
	}
	return nil
}

// payers returns the entity and the parents that pay with it, as far as they are stored. It notes a parent
// that does not pay.
func (p *patient) payers(ctx context.Context) ([]api.Name, error) {
	all := []api.Name{p.entity}
	for len(all) <= limiter.MaxLevels {
		of := all[len(all)-1]
		e, err := p.n.Entity(ctx, of)
		switch {
		case isNotFound(err):
			if of == p.entity {
				return all, p.unstored(ctx)
			}
			return all, nil
		case err != nil:
			return all, err
		}
		if e.PlanUnknown {
			p.d.wrong(api.SectionEnforced, unknownPlan(e), fmt.Sprintf("a plan of this name in the file; or another: ratelimit set entity %s --plan NAME", of))
		}
		switch {
		case e.Parent == "":
			return all, nil
		case !e.Cascade:
			p.d.well(api.SectionCascade, fmt.Sprintf("entity %s has the parent %s, which pays nothing", of, e.Parent), fmt.Sprintf("should it? ratelimit set entity %s --cascade", of))
			return all, nil
		}
		all = append(all, e.Parent)
	}
	return all, nil
}

// unstored reports that the entity is not stored, and which may be meant if it is nowhere.
func (p *patient) unstored(ctx context.Context) error {
	state, err := p.n.Disabled(ctx, api.Subject{Entity: p.entity})
	switch {
	case err != nil:
		return err
	case state.Note != "":
		p.d.well(api.SectionDenial, state.Note, "")
	default:
		p.d.well(api.SectionCascade, fmt.Sprintf("entity %s is not stored: a parent of it is in the configuration, or in none", p.entity), "")
	}
	return nil
}

// disabled looks for a payer or a resource that is disabled, and for a namespace that denies each request.
func (p *patient) disabled(ctx context.Context, payers []api.Name) error {
	before := p.d.Wrong
	if err := namespaceStep(ctx, p.n, p.d); err != nil {
		return err
	}
	type subject struct {
		of   api.Subject
		text string
	}
	var all []subject
	if p.resource != "" {
		all = append(all, subject{api.Subject{Resource: p.resource}, "resource " + p.resource.String()})
	}
	for _, id := range payers {
		all = append(all, subject{api.Subject{Entity: id}, "entity " + id.String()})
	}
	for _, s := range all {
		state, err := p.n.Disabled(ctx, s.of)
		if err != nil {
			return err
		}
		if state.Disabled {
			p.d.wrong(api.SectionDenial, s.text+" is disabled: requests of "+p.entity.String()+" are denied", "ratelimit enable "+s.text)
		}
	}
	if p.d.Wrong == before {
		p.d.well(api.SectionDenial, fmt.Sprintf("entity %s is not disabled", p.entity), "")
	}
	return nil
}

// limits looks for the limits that decide.
func (p *patient) limits(ctx context.Context, _ []api.Name) error {
	list, err := p.n.Effective(ctx, api.LimitsOf{Entity: p.entity, Resource: p.resource})
	switch {
	case isUnsupported(err):
		return nil
	case err != nil:
		return err
	case len(list.Items) == 0:
		p.d.wrong(api.SectionEnforced, fmt.Sprintf("no level has a limit for %s: only limits of a rule or of its plan apply", p.subject()), "ratelimit set limits --entity "+p.entity.String()+" NAME=RATE")
		return nil
	}
	var limited, unlimited []string
	for _, l := range list.Items {
		text := fmt.Sprintf("%s %s, %s", l.Name, money.Amounts(l.Name, l.Limit.String()), l.Source)
		if l.Limit.Rate == "unlimited" {
			unlimited = append(unlimited, text)
		} else {
			limited = append(limited, text)
		}
	}
	if len(limited) == 0 {
		p.d.wrong(api.SectionEnforced, fmt.Sprintf("%s is unlimited: %s", p.subject(), strings.Join(unlimited, "; ")), "ratelimit get limits --effective, and change the level that it names")
		return nil
	}
	p.d.well(api.SectionEnforced, "limits of "+p.subject()+": "+strings.Join(append(limited, unlimited...), "; "), "")
	notes, err := ruleLimits(ctx, p.n, api.LimitsOf{Entity: p.entity, Resource: p.resource}, beforeEntity(list.Items))
	for _, note := range notes {
		p.d.well(api.SectionEnforced, note, "")
	}
	return err
}

// subject names the entity and the resource.
func (p *patient) subject() string {
	if p.resource == "" {
		return "entity " + p.entity.String()
	}
	return fmt.Sprintf("entity %s for resource %s", p.entity, p.resource)
}

// buckets looks for balances below one token.
func (p *patient) buckets(ctx context.Context, payers []api.Name) error {
	for i, id := range payers {
		list, err := p.n.ListBuckets(ctx, api.LimitsOf{Entity: id, Resource: p.resource}, api.Page{Size: 100})
		if err != nil {
			return err
		}
		section := api.SectionDenial
		if i > 0 {
			section = api.SectionCascade
		}
		if len(list.Items) == 0 {
			p.d.well(section, fmt.Sprintf("no bucket of entity %s is in use: a request finds a full one", id), "did requests come? compare the ID with the entity of ratelimit explain")
		}
		for i := range list.Items {
			p.bucket(section, &list.Items[i])
		}
	}
	return nil
}

// bucket reports the limits of a bucket that are used up, or that none is.
func (p *patient) bucket(section string, b *api.Bucket) {
	used := false
	for _, l := range b.Limits {
		if l.Available == nil || *l.Available >= limiter.Milli {
			continue
		}
		used = true
		next := fmt.Sprintf("used up as intended: the client waits; by mistake: ratelimit reset bucket --entity %s --resource %s; too low: ratelimit set limits", b.Entity, b.Resource)
		if b.Shadow {
			p.d.well(section, fmt.Sprintf("entity %s for resource %s: a rule in shadow mode would deny by %s %s", b.Entity, b.Resource, l.Name, l.Limit), "")
			continue
		}
		p.d.wrong(section, fmt.Sprintf("entity %s for resource %s: limit %s %s is used up, %s left", b.Entity, b.Resource, l.Name, money.Amounts(l.Name, l.Limit.String()), money.Amounts(l.Name, l.Available.String())), next)
	}
	if !used {
		p.d.well(section, fmt.Sprintf("entity %s for resource %s has tokens of each limit", b.Entity, b.Resource), "")
	}
}

// budgets looks for budgets that are used up, of this day and this month.
func (p *patient) budgets(ctx context.Context, payers []api.Name) error {
	now := time.Now()
	for _, id := range payers {
		for _, w := range []limiter.UsageWindow{limiter.UsageDay, limiter.UsageMonth} {
			list, err := p.n.ListUsage(ctx, api.UsageOf{Entity: id, Resource: p.resource, Window: api.Window(w.String()), From: w.Start(now), Budgets: true}, api.Page{Size: 100})
			if err != nil {
				return err
			}
			for _, u := range list.Items {
				p.budget(&u)
			}
		}
	}
	return nil
}

func (p *patient) budget(u *api.Usage) {
	for _, limit := range slices.Sorted(maps.Keys(u.Budget)) {
		budget := u.Budget[limit]
		if used := u.Used[limit]; budget > 0 && int64(used)/limiter.Milli >= budget {
			p.d.wrong(api.SectionBudget, fmt.Sprintf("entity %s for resource %s used %s of its budget of %s for this %s, limit %s", u.Entity, u.Resource,
				money.Amounts(limit, used.String()), money.Amounts(limit, strconv.FormatInt(budget, 10)), u.Window, limit), "ratelimit disable entity "+u.Entity.String()+", or a greater budget")
		}
	}
}
