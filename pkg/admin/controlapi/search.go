package controlapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	searchSize = 20                    // most items without the parameter size
	maxFound   = 100                   // most items
	searchTime = 80 * time.Millisecond // for the comparison of stored entities; begun pages are read to their end
)

// finder finds entities and limits of the store, of the configuration file, and in use.
type finder struct {
	sources  Sources
	activity Activity
}

func (a finder) endpoints() []endpoint {
	return []endpoint{a.familyEndpoint(), a.fileEndpoint(), {
		method: http.MethodGet, path: namespacePath + "/search", role: admin.RoleRead, result: api.Search{},
		query: []param{
			{"text", "a part of the ID or the name of an entity"},
			{"size", "most items, 1 to 100; 20 without it"},
		},
		summary: "Find entities that are stored, in the configuration file, or in use, by a part of their ID or name", run: a.search,
	}}
}

// finding is a search at work.
type finding struct {
	text string
	size int
	all  []api.Found
}

// add notes an entity that was found at one more place. It reports whether there is room for others.
func (f *finding) add(id, name string, note func(*api.Found)) bool {
	at := slices.IndexFunc(f.all, func(x api.Found) bool { return string(x.ID) == id })
	if at < 0 {
		if f.full() {
			return false
		}
		at = len(f.all)
		f.all = append(f.all, api.Found{ID: api.Name(id)})
	}
	if name != "" {
		f.all[at].Name = name
	}
	note(&f.all[at])
	return !f.full()
}

func (f *finding) full() bool { return len(f.all) >= f.size }

func (f *finding) matches(text string) bool { return strings.Contains(text, f.text) }

// search looks first where the entity is most likely, and costs least: at the ID itself, and at the ID
// behind each prefix that rules give to entities. So k-1 finds key/k-1 at once among any number.
func (a finder) search(c *call) (any, error) {
	f := finding{text: c.query.Get("text"), all: []api.Found{}}
	if f.text == "" {
		return nil, invalid("the parameter text is missing: it is a part of the ID or the name of an entity")
	}
	var err error
	if f.size, err = c.size(maxFound, searchSize); err != nil {
		return nil, err
	}
	file := a.sources.file()
	for _, prefix := range append([]string{""}, file.Rules.EntityPrefixes(c.namespace())...) {
		r, err := c.store.Get(c.ctx(), c.namespace(), limiter.EntityRef(prefix+f.text))
		if err != nil {
			return nil, err
		}
		if r.Entity != nil {
			f.add(prefix+f.text, r.Entity.Name, func(x *api.Found) { x.Stored = true })
		}
	}
	a.searchInUse(c, &f)
	for id := range sorted(file.Static.Entities) {
		if f.matches(id) && !f.add(id, "", func(x *api.Found) { x.File = true }) {
			break
		}
	}
	complete, err := a.searchStored(c, &f)
	return api.Search{Items: f.all, Complete: complete}, err
}

// searchInUse finds entities of the last minute.
func (a finder) searchInUse(c *call, f *finding) {
	for _, counter := range []*TopCounter{a.activity.Denied, a.activity.Busiest} {
		if counter == nil {
			continue
		}
		for _, row := range counter.Top(c.now(), limiter.MaxPage, TopFilter{Namespace: c.namespace()}) {
			if f.matches(row.Entity) {
				f.add(row.Entity, "", func(x *api.Found) { x.Active = true })
			}
		}
	}
}

// searchStored compares stored entities, for a bounded time. It reports whether it compared all.
func (a finder) searchStored(c *call, f *finding) (complete bool, err error) {
	began := c.now()
	p := limiter.Page{Size: limiter.MaxPage}
	for !f.full() {
		page, err := c.store.ListEntities(c.ctx(), c.namespace(), limiter.EntityFilter{}, p)
		if err != nil {
			return false, err
		}
		for i := range page.Items {
			e := page.Items[i].Record.Entity
			if e != nil && (f.matches(e.ID) || f.matches(e.Name)) {
				f.add(e.ID, e.Name, func(x *api.Found) { x.Stored = true })
			}
		}
		if page.Next == "" {
			return !f.full(), nil
		}
		if c.now().Sub(began) > searchTime {
			return false, nil
		}
		p.After = page.Next
	}
	return false, nil
}
