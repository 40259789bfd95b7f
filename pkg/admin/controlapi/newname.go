package controlapi

import (
	"errors"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// allowNew is the parameter of changes that may bring new names, of the kinds that the change can have.
func allowNew(kinds ...string) param {
	return param{"allowNew", "true allows names that are new; or a list of the kinds that may be: " + strings.Join(kinds, ", ")}
}

// allows reports whether a change may bring a new name of a kind: api.NewNamespace and so on.
func (c *call) allows(kind string) (bool, error) {
	text := c.query.Get("allowNew")
	switch text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	kinds := strings.Split(text, ",")
	for _, k := range kinds {
		if !slices.Contains(api.NewNames(), k) {
			return false, invalid("the parameter allowNew is %.100q; it must be true, false, or a list of %s", text, strings.Join(api.NewNames(), ", "))
		}
	}
	return slices.Contains(kinds, kind), nil
}

// newNames refuses new names that are probably mistakes.
type newNames struct {
	file    func() *File    // nil = not known: then new entities and resources are not refused
	buckets limiter.Buckets // nil = not known
}

func (a *API) newNames() newNames { return newNames{a.cfg.Sources.File, a.cfg.Buckets} }

// howToAllow ends the refusal of a new name.
const howToAllow = ": correct the name, or allow a new one (--allow-new, or the parameter allowNew=true)"

// howToAllowNear is howToAllow where a name is near.
const howToAllowNear = " A new name needs --allow-new, or the parameter allowNew=true"

// withoutAllow is the text of a refusal for a change that needs no allowance.
func withoutAllow(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, howToAllow), howToAllowNear)
}

// meant ends the refusal of a new name, of which near may be meant; "" = no name is near.
func meant(near string) string {
	if near == "" {
		return howToAllow
	}
	return "; did you mean " + api.Name(near).String() + "?" + howToAllowNear
}

// checkNamespace refuses a change in a namespace that was never in use.
func (n newNames) checkNamespace(c *call) error {
	name := c.namespace()
	allowed, err := c.allows(api.NewNamespace)
	if err != nil || allowed || name == limiter.DefaultNamespace {
		return err
	}
	if n.isRuled(name) { // no request came yet
		return nil
	}
	_, err = c.store.GetNamespace(c.ctx(), name)
	if !errors.Is(err, limiter.ErrNotFound) {
		return err
	}
	known, err := n.namespaces(c)
	if err != nil {
		return err
	}
	return invalid("namespace %s was never in use%s", api.Name(name), meant(limiter.ClosestName(name, known)))
}

// isRuled reports whether rules take from a namespace.
func (n newNames) isRuled(namespace string) bool {
	return n.file != nil && n.file().resources(namespace).Ruled
}

// namespaces returns the names of the default namespace, of those of rules, and of a page of those in use.
func (n newNames) namespaces(c *call) ([]string, error) {
	page, err := c.store.ListNamespaces(c.ctx(), limiter.NamespaceFilter{}, limiter.Page{Size: limiter.MaxPage})
	if err != nil {
		return nil, err
	}
	known := []string{limiter.DefaultNamespace}
	for _, ns := range page.Items {
		known = append(known, ns.Name)
	}
	if n.file != nil {
		for _, d := range n.file().Rules.Domains() {
			known = append(known, d.Namespace())
		}
	}
	return known, nil
}

// checkParent refuses a parent that is nowhere, unless the entity has it already.
func (n newNames) checkParent(c *call, id, parent string) error {
	allowed, err := c.allows(api.NewParent)
	if err != nil || allowed || parent == "" || parent == id || n.file == nil {
		return err
	}
	stored, err := c.store.Get(c.ctx(), c.namespace(), limiter.EntityRef(id))
	if err != nil || stored.Entity != nil && stored.Entity.Parent == parent {
		return err
	}
	return n.checkEntityThere(c, "the parent ", parent)
}

// checkDisabled refuses an entity or a resource that is nowhere, and cannot be disabled.
func (n newNames) checkDisabled(c *call, ref limiter.Ref) error {
	switch ref.Kind {
	case limiter.RefResourceLimits:
		return n.checkResource(c, ref.Resource)
	case limiter.RefEntity:
	case limiter.RefSystemLimits, limiter.RefEntityLimits:
		return nil
	}
	allowed, err := c.allows(api.NewEntity)
	if err != nil || allowed || n.file == nil {
		return err
	}
	return n.checkEntityThere(c, "entity ", ref.Entity)
}

// checkEntityThere refuses an entity that is nowhere. title comes before its ID.
func (n newNames) checkEntityThere(c *call, title, id string) error {
	there, err := n.hasEntity(c, id)
	if err != nil || there {
		return err
	}
	known, err := n.entities(c)
	if err != nil {
		return err
	}
	return invalid("%s%s is neither stored nor in the configuration nor in use%s", title, api.Name(id), meant(limiter.ClosestName(id, known)))
}

// checkLimitsOwner refuses a new entity whose ID is a misspelling of a known one, and a new resource as
// checkResource does.
func (n newNames) checkLimitsOwner(c *call, ref limiter.Ref) error {
	if err := n.checkResource(c, ref.Resource); err != nil || ref.Entity == "" {
		return err
	}
	allowed, err := c.allows(api.NewEntity)
	if err != nil || allowed || n.file == nil {
		return err
	}
	if there, err := n.hasEntity(c, ref.Entity); err != nil || there {
		return err
	}
	known, err := n.entities(c)
	if err != nil {
		return err
	}
	if near := limiter.Misspelled(ref.Entity, known); near != "" {
		return invalid("entity %s is new%s", api.Name(ref.Entity), meant(near))
	}
	return nil
}

// checkResource refuses a resource that no rule takes from. Where a rule takes from any, it refuses a new one
// whose name is a misspelling of a known one.
func (n newNames) checkResource(c *call, name string) error {
	allowed, err := c.allows(api.NewResource)
	if err != nil || allowed || name == "" || name == limiter.DefaultResource || n.file == nil {
		return err
	}
	rules := n.file().resources(c.namespace())
	if rules.Has(name) {
		return nil
	}
	there, err := n.hasResource(c, name)
	if err != nil || there {
		return err
	}
	known, err := n.resources(c, rules.Names)
	if err != nil {
		return err
	}
	near := limiter.Misspelled(name, known)
	switch {
	case rules.Open() && near == "":
		return nil
	case rules.Open():
		return invalid("resource %s is new%s", api.Name(name), meant(near))
	}
	return invalid("no rule takes from resource %s in namespace %s%s", api.Name(name), api.Name(c.namespace()), meant(limiter.ClosestName(name, known)))
}
