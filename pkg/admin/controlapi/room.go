package controlapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxSubjects is how many buckets are tried for one change of a level that many of them have.
const maxSubjects = 1000

// subject is the entity and the resource of a bucket. "" is one without limits of its own.
type subject struct{ entity, resource string }

func (s subject) String() string {
	entity, resource := "an entity without its own", "a resource without its own"
	if s.entity != "" {
		entity = "entity " + api.Name(s.entity).String()
	}
	if s.resource != "" {
		resource = "resource " + api.Name(s.resource).String()
	}
	return entity + ", for " + resource
}

// refs are the records that the limits of the bucket come from.
func (s subject) refs() []limiter.Ref {
	all := []limiter.Ref{limiter.SystemLimitsRef()}
	if s.resource != "" {
		all = append(all, limiter.ResourceLimitsRef(s.resource))
	}
	if s.entity != "" {
		all = append(all, limiter.EntityRef(s.entity), limiter.EntityLimitsRef(s.entity, limiter.DefaultResource))
	}
	if s.entity != "" && s.resource != "" {
		all = append(all, limiter.EntityLimitsRef(s.entity, s.resource))
	}
	return all
}

// checkRoom refuses a change after which a bucket has no room for a limit that it had room for before: the limit
// would not count any more. The stored records of one page are tried, and those of the file. A bucket that no call
// asks does not count.
func (a *API) checkRoom(c *call, ref limiter.Ref, after limiter.Record) error {
	if a.cfg.Sources.Dropped == nil {
		return nil
	}
	before, err := c.store.Get(c.ctx(), c.namespace(), ref)
	if err != nil || ref.Kind == limiter.RefEntity && planOf(before) == planOf(after) {
		return err
	}
	r := room{call: c, sources: a.cfg.Sources, ref: ref, before: before, after: after, known: make(map[limiter.Ref]limiter.Record)}
	subjects, err := r.subjects()
	for i := 0; i < len(subjects) && err == nil; i++ {
		err = r.check(subjects[i])
	}
	return err
}

// planOf returns the plan of a stored entity; "" = none.
func planOf(r limiter.Record) string {
	if r.Entity == nil {
		return ""
	}
	return r.Entity.Plan
}

// room finds the limits for which a change leaves no room.
type room struct {
	*call

	sources       Sources
	ref           limiter.Ref
	before, after limiter.Record
	known         map[limiter.Ref]limiter.Record // other records, as far as they were read
	listed        bool                           // known has those of a page: one bucket is not all
	entitiesKnown bool                           // all entities are in known
	limitsKnown   bool                           // all limits are
}

// check refuses the change if the bucket of a subject has no room for a limit only then. Records beyond the page are
// read where it has none without them.
func (r *room) check(s subject) error {
	var stored []limiter.Stored
	for _, ref := range s.refs() {
		if record, known := r.known[ref]; known {
			stored = append(stored, limiter.Stored{Ref: ref, Record: record})
		}
	}
	if r.listed && len(r.dropped(s, stored, r.after)) == 0 {
		return nil
	}
	stored = nil
	for _, ref := range s.refs() {
		record, err := r.record(ref)
		if err != nil {
			return err
		}
		stored = append(stored, limiter.Stored{Ref: ref, Record: record})
	}
	dropped := r.dropped(s, stored, r.after)
	if len(dropped) == 0 {
		return nil
	}
	var names []string
	was := r.dropped(s, stored, r.before)
	for _, l := range dropped {
		if !slices.ContainsFunc(was, func(w limiter.EffectiveLimit) bool { return w.Limit.Name == l.Limit.Name }) {
			names = append(names, l.Limit.Name+" of "+l.From())
		}
	}
	if len(names) == 0 {
		return nil
	}
	if asked, err := r.asked(s); !asked || err != nil {
		return err
	}
	return problem(http.StatusUnprocessableEntity, api.NoRoom, fmt.Sprintf(
		"%s: there would be %d limits, and a bucket has at most %d, so that %s would not count; give fewer names, delete others first, or store limits that stand alone (inherit: false)",
		s, limiter.MaxLimits+len(dropped), limiter.MaxLimits, strings.Join(names, ", ")))
}

// asked reports whether a call may ask the bucket of a subject: that of an entity from which rules take for other
// resources alone may be asked for those of its children.
func (r *room) asked(s subject) (bool, error) {
	if r.sources.File == nil || s.entity == "" || s.resource == "" || r.ref == limiter.EntityLimitsRef(s.entity, s.resource) {
		return true, nil
	}
	file := r.sources.File()
	if fromEntity, forResource := file.Rules.Takes(r.namespace(), s.entity, s.resource); !fromEntity || forResource {
		return true, nil
	}
	for id := range file.Static.Entities {
		if file.Static.Entities[id].Parent == s.entity {
			return true, nil
		}
	}
	children, err := r.store.ListEntities(r.ctx(), r.namespace(), limiter.EntityFilter{Parent: s.entity}, limiter.Page{Size: 1})
	return len(children.Items) > 0, err
}

// dropped returns the limits for which the bucket of a subject has no room, with the changed record.
func (r *room) dropped(s subject, stored []limiter.Stored, changed limiter.Record) []limiter.EffectiveLimit {
	return r.sources.Dropped(s.entity, s.resource, append(slices.Clip(stored), limiter.Stored{Ref: r.ref, Record: changed})...)
}

// record returns the stored record of a ref.
func (r *room) record(ref limiter.Ref) (limiter.Record, error) {
	record, known := r.known[ref]
	if known || ref.Kind == limiter.RefEntity && r.entitiesKnown || ref.Kind != limiter.RefEntity && r.limitsKnown {
		return record, nil
	}
	record, err := r.store.Get(r.ctx(), r.namespace(), ref)
	r.known[ref] = record
	return record, err
}

// subjects returns those whose buckets the change may fill: at most maxSubjects.
func (r *room) subjects() ([]subject, error) {
	one := subject{r.ref.Entity, r.ref.Resource}
	if one.resource == limiter.DefaultResource {
		one.resource = ""
	}
	if one.entity != "" && one.resource != "" {
		return []subject{one}, nil
	}
	entities, resources, err := r.limited()
	if err != nil {
		return nil, err
	}
	if one.entity != "" {
		entities = []string{one.entity}
	}
	if one.resource != "" {
		resources = []string{one.resource}
	}
	var all []subject
	for _, entity := range entities {
		for _, resource := range resources {
			if len(all) < maxSubjects {
				all = append(all, subject{entity, resource})
			}
		}
	}
	return all, nil
}

// limited returns the entities and the resources with limits of their own, and "" for all others. It returns "" alone
// where all known names fit one bucket.
func (r *room) limited() (entities, resources []string, err error) {
	entities, resources = []string{""}, []string{""}
	names := make(map[string]bool)
	if r.sources.Names != nil {
		names = maps.Clone(r.sources.Names())
	}
	r.after.Limits.AddNames(names)
	if err := r.list(); err != nil {
		return nil, nil, err
	}
	for ref, record := range r.known {
		record.Limits.AddNames(names)
		entities = append(entities, ref.Entity)
		if ref.Resource != limiter.DefaultResource {
			resources = append(resources, ref.Resource)
		}
	}
	if len(names) <= limiter.MaxLimits {
		return entities[:1], resources[:1], nil
	}
	if r.sources.File != nil {
		file := r.sources.File()
		entities, resources = append(entities, file.entities()...), append(resources, file.resources(r.namespace()).Names...)
	}
	slices.Sort(entities)
	slices.Sort(resources)
	return slices.Compact(entities), slices.Compact(resources), nil
}

// list reads a page of all limits, in which those of the system and of resources come first. It reads a page of all
// entities with a plan, too. For a change of an entity it reads no limits and no plan of others.
func (r *room) list() error {
	most := limiter.Page{Size: limiter.MaxPage}
	limits, err := r.store.ListLimits(r.ctx(), r.namespace(), limiter.LimitsFilter{General: r.ref.Entity != ""}, most)
	if err != nil {
		return err
	}
	r.listed = true
	if r.ref.Entity != "" {
		r.learn(limits.Items)
		limits, err = r.store.ListLimits(r.ctx(), r.namespace(), limiter.LimitsFilter{Entity: r.ref.Entity}, most)
		r.learn(limits.Items)
		if err == nil {
			r.known[limiter.EntityRef(r.ref.Entity)], err = r.record(limiter.EntityRef(r.ref.Entity))
		}
		return err
	}
	r.learn(limits.Items)
	r.limitsKnown = limits.Next == ""
	planned, err := r.store.ListEntities(r.ctx(), r.namespace(), limiter.EntityFilter{}, most)
	r.learn(slices.DeleteFunc(planned.Items, func(s limiter.Stored) bool { return planOf(s.Record) == "" }))
	r.entitiesKnown = err == nil && planned.Next == ""
	return err
}

// learn notes stored records.
func (r *room) learn(all []limiter.Stored) {
	for _, s := range all {
		r.known[s.Ref] = s.Record
	}
}
