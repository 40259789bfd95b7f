package manifest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Kept is the result of a record that left the manifest and is not deleted.
const Kept api.Result = "kept"

// atOnce bounds the requests that are under way.
const atOnce = 8

// readEach is how many records are read one by one. More are listed.
const readEach = 200

// Options are the permissions of a plan.
type Options struct {
	Prune    bool   // delete records that the manifest made and does not have any more
	TakeOver bool   // own records that another manifest owns
	Reason   string // of the changes, for the audit; "" = none
	AllowNew bool   // names may be new: of the namespace, of parents, resources and limits
}

// Change is the effect on one record.
type Change struct {
	Ref    limiter.Ref
	Result api.Result // created, changed, unchanged, deleted or kept
	Why    string     // of a record that is kept
	Done   bool       // it was made
	// Effective are the limits that decide for the subject of limits before the plan, and with this change
	// alone; nil = not known.
	Effective *api.Effective

	before, after Record
}

// Before is the stored record, without the members that the store sets; nil = none.
func (c *Change) Before() any { return c.before.content() }

// After is the record of the manifest; nil = none.
func (c *Change) After() any { return c.after.content() }

// Makes reports whether the change alters the record.
func (c *Change) Makes() bool {
	return c.Result == api.Created || c.Result == api.Changed || c.Result == api.Deleted
}

// Plan has the changes that a manifest makes.
type Plan struct {
	Changes []Change // of the records of the manifest in order, then of those that left it
	Left    int      // records that left the manifest and stay, for want of Options.Prune

	namespace *api.NamespaceClient
	allowNew  bool
	reason    string     // of the changes
	named     bool       // the manifest names its namespace
	own       *inventory // nil = the manifest has no name
	drop      []string   // keys that the inventory loses
	inMemory  atomic.Bool
	crowded   atomic.Bool // a bucket has room for all limits only after changes that take some away
}

// NewPlan compares a manifest with the records of a namespace.
func NewPlan(ctx context.Context, n *api.NamespaceClient, m *Manifest, o Options) (*Plan, error) {
	p := &Plan{namespace: n, allowNew: o.AllowNew, reason: o.Reason, named: m.Namespace != ""}
	all, err := inventories(ctx, n)
	if err != nil {
		return nil, err
	}
	p.own = all[m.Name]
	if p.own == nil && m.Name != "" {
		p.own = &inventory{name: m.Name}
	}
	delete(all, m.Name)
	if m.Name != "" && !o.TakeOver {
		if err := foreign(m, all); err != nil {
			return nil, err
		}
	}
	refs := make([]limiter.Ref, len(m.Records))
	for i, r := range m.Records {
		refs[i] = r.Ref
	}
	stored, err := read(ctx, n, refs)
	if err != nil {
		return nil, err
	}
	for _, r := range m.Records {
		c, err := compare(r.Ref, stored[r.Ref], r)
		if err != nil {
			return nil, err
		}
		p.Changes = append(p.Changes, c)
	}
	return p, p.leave(ctx, refs, all, o)
}

// foreign refuses a manifest with records of another one.
func foreign(m *Manifest, others map[string]*inventory) error {
	for _, r := range m.Records {
		if name := owner(r.Ref, others); name != "" {
			return fmt.Errorf("%s: %s belongs to manifest %s: remove it from one of them, or take it over with --take-over", r.Place(), Subject(r.Ref), name)
		}
	}
	return nil
}

// owner is the manifest that owns a record; "" = none.
func owner(ref limiter.Ref, inventories map[string]*inventory) string {
	for name, inv := range inventories {
		if inv.digest(keyOf(ref)) != "" {
			return name
		}
	}
	return ""
}

// compare returns the change from a stored record, which can be empty, to another.
func compare(ref limiter.Ref, before, after Record) (Change, error) {
	c := Change{Ref: ref, Result: api.Changed, before: before, after: after}
	old, err := before.digest()
	if err != nil {
		return c, err
	}
	wanted, err := after.digest()
	switch {
	case before.content() == nil:
		c.Result = api.Created
	case old == wanted:
		c.Result = api.Unchanged
	}
	return c, err
}

// leave adds the changes of records that the manifest owns and does not have any more.
func (p *Plan) leave(ctx context.Context, present []limiter.Ref, others map[string]*inventory, o Options) error {
	if p.own == nil {
		return nil
	}
	refs, err := p.own.refs()
	if err != nil {
		return err
	}
	have := make(map[limiter.Ref]bool, len(present))
	for _, ref := range present {
		have[ref] = true
	}
	refs = slices.DeleteFunc(refs, func(ref limiter.Ref) bool { return have[ref] })
	if !o.Prune {
		p.Left = len(refs)
		return nil
	}
	stored, err := read(ctx, p.namespace, refs)
	if err != nil {
		return err
	}
	slices.Reverse(refs) // limits before their entity
	going := make(map[limiter.Ref]bool)
	for _, ref := range refs {
		if err := p.leaveOne(ctx, ref, stored[ref], others, going); err != nil {
			return err
		}
	}
	return nil
}

// leaveOne adds the change of one record that left. going has those that are deleted before.
func (p *Plan) leaveOne(ctx context.Context, ref limiter.Ref, stored Record, others map[string]*inventory, going map[limiter.Ref]bool) error {
	if stored.content() == nil {
		p.drop = append(p.drop, keyOf(ref))
		return nil
	}
	c := Change{Ref: ref, Result: api.Deleted, before: stored}
	digest, err := stored.digest()
	if err != nil {
		return err
	}
	switch name := owner(ref, others); {
	case name != "":
		c.Why = "manifest " + name + " owns it too"
		p.drop = append(p.drop, keyOf(ref))
	case digest != p.own.digest(keyOf(ref)):
		c.Why = "it was changed since the manifest was applied"
	case ref.Kind == limiter.RefEntity:
		c.Why, err = p.staying(ctx, ref, going)
	}
	if c.Why != "" {
		c.Result = Kept
	} else {
		going[ref] = true
		p.drop = append(p.drop, keyOf(ref))
	}
	p.Changes = append(p.Changes, c)
	return err
}

// staying names limits that the deletion of an entity would delete with it.
func (p *Plan) staying(ctx context.Context, entity limiter.Ref, going map[limiter.Ref]bool) (string, error) {
	f := api.LimitsFilter{Entity: api.Name(entity.Entity)}
	list := func(page api.Page) (*api.List[api.Limits], error) { return p.namespace.ListLimits(ctx, f, page) }
	for l, err := range api.Each(list) {
		if err != nil {
			return "", err
		}
		if ref := ofLimits(l).Ref; !going[ref] {
			return "its deletion would delete the " + Subject(ref), nil
		}
	}
	return "", nil
}

// read returns the stored records among refs.
func read(ctx context.Context, n *api.NamespaceClient, refs []limiter.Ref) (map[limiter.Ref]Record, error) {
	if len(refs) > readEach {
		all, err := List(ctx, n)
		found := make(map[limiter.Ref]Record, len(all))
		for _, r := range all {
			found[r.Ref] = r
		}
		return found, err
	}
	records := make([]Record, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ref := range refs {
		group.Go(func() error {
			var err error
			records[i], err = readOne(ctx, n, ref)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := make(map[limiter.Ref]Record, len(refs))
	for i, ref := range refs {
		found[ref] = records[i]
	}
	return found, nil
}

func readOne(ctx context.Context, n *api.NamespaceClient, ref limiter.Ref) (Record, error) {
	var r Record
	var err error
	if ref.Kind == limiter.RefEntity {
		r.Entity, err = n.Entity(ctx, api.Name(ref.Entity))
	} else {
		r.Limits, err = n.Limits(ctx, limitsOf(ref))
	}
	if is(err, api.NotFound) {
		return Record{}, nil
	}
	r.Ref = ref
	return r, err
}

// List returns every record of a namespace, without inventories, in order.
func List(ctx context.Context, n *api.NamespaceClient) ([]Record, error) {
	var all []Record
	entities := func(p api.Page) (*api.List[api.Entity], error) {
		p.Size = limiter.MaxPage
		return n.ListEntities(ctx, "", p)
	}
	for e, err := range api.Each(entities) {
		if err != nil {
			return nil, err
		}
		if !IsInventory(string(e.ID)) {
			all = append(all, ofEntity(e))
		}
	}
	limits := func(p api.Page) (*api.List[api.Limits], error) {
		p.Size = limiter.MaxPage
		return n.ListLimits(ctx, api.LimitsFilter{}, p)
	}
	for l, err := range api.Each(limits) {
		if err != nil {
			return nil, err
		}
		if r := ofLimits(l); r.content() != nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return order(a.Ref, b.Ref) })
	return all, nil
}

// Contents are records as a manifest has them, without the members that the store sets.
func Contents(records []Record) []any {
	items := make([]any, len(records))
	for i, r := range records {
		items[i] = r.content()
	}
	return items
}
