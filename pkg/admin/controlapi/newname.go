package controlapi

import (
	"errors"
	"fmt"
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

// howToAllow ends the refusal of a new name, where none is near.
const howToAllow = ": correct the name, or allow a new one (--allow-new, or the parameter allowNew=true)"

// newName is a name that is new, and probably a mistake.
type newName struct {
	text string // says that it is new
	near string // the name that may be meant; "" = none is near
}

// note says that the name is new, and which may be meant. That of nil is "".
func (n *newName) note() string {
	switch {
	case n == nil:
		return ""
	case n.near == "":
		return n.text
	}
	return n.text + "; did you mean " + api.Name(n.near).String() + "?"
}

// refused is the refusal of the name, with how to allow it. That of nil is nil.
func (n *newName) refused() error {
	switch {
	case n == nil:
		return nil
	case n.near == "":
		return invalid("%s%s", n.text, howToAllow)
	}
	return invalid("%s A new name needs --allow-new, or the parameter allowNew=true", n.note())
}

// cutName returns a new name that has the form in which lists have a long one; nil = it has another form. title comes
// before it.
func cutName(title, name string) *newName {
	if !limiter.Shortened(name) {
		return nil
	}
	return &newName{text: fmt.Sprintf("%s%s is new, and looks like a name of more than %d bytes as lists cut it", title, api.Name(name), limiter.MaxShownName)}
}

// refuse refuses a new name, unless there is none or an error.
func refuse(name *newName, err error) error {
	if err != nil {
		return err
	}
	return name.refused()
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
	found := newName{fmt.Sprintf("namespace %s was never in use", api.Name(name)), limiter.ClosestName(name, known)}
	return found.refused()
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

// checkCut refuses the ID of a new entity where it has the form in which lists have a long one.
func (n newNames) checkCut(c *call, id string) error {
	allowed, err := c.allows(api.NewEntity)
	if err != nil || allowed || n.file == nil || !limiter.Shortened(id) {
		return err
	}
	return refuse(n.newEntity(c, "entity ", id))
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
	return refuse(n.newEntity(c, "the parent ", parent))
}

// newSubject returns an entity or a resource that is nowhere, and cannot be disabled; nil = none, or it is allowed.
func (n newNames) newSubject(c *call, ref limiter.Ref) (*newName, error) {
	switch ref.Kind {
	case limiter.RefResourceLimits:
		return n.newResource(c, ref.Resource)
	case limiter.RefEntity:
	case limiter.RefSystemLimits, limiter.RefEntityLimits:
		return nil, nil //nolint:nilnil // these are always there
	}
	allowed, err := c.allows(api.NewEntity)
	if err != nil || allowed || n.file == nil {
		return nil, err
	}
	return n.newEntity(c, "entity ", ref.Entity)
}

// newEntity returns an entity that is nowhere; nil = it is there. title comes before its ID.
func (n newNames) newEntity(c *call, title, id string) (*newName, error) {
	there, err := n.hasEntity(c, id)
	if err != nil || there {
		return nil, err
	}
	if cut := cutName(title, id); cut != nil {
		return cut, nil
	}
	known, err := n.entities(c)
	if err != nil {
		return nil, err
	}
	return &newName{fmt.Sprintf("%s%s is neither stored nor in the configuration nor in use", title, api.Name(id)), limiter.ClosestName(id, known)}, nil
}

// checkLimitsOwner refuses a new entity whose ID is a misspelling of a known one, and a new resource.
func (n newNames) checkLimitsOwner(c *call, ref limiter.Ref) error {
	if err := refuse(n.newResource(c, ref.Resource)); err != nil || ref.Entity == "" {
		return err
	}
	allowed, err := c.allows(api.NewEntity)
	if err != nil || allowed || n.file == nil {
		return err
	}
	if there, err := n.hasEntity(c, ref.Entity); err != nil || there {
		return err
	}
	if cut := cutName("entity ", ref.Entity); cut != nil {
		return cut.refused()
	}
	if wrong := n.wrongKind(c, ref.Entity); wrong != nil {
		return wrong.refused()
	}
	known, err := n.entities(c)
	if err != nil {
		return err
	}
	if near := limiter.Misspelled(ref.Entity, known); near != "" && n.wrongKind(c, near) == nil {
		found := newName{fmt.Sprintf("entity %s is new", api.Name(ref.Entity)), near}
		return found.refused()
	}
	return nil
}

// wrongKind returns an entity whose ID begins with a misspelling of the text with which those of rules begin: users/ada
// beside user/{user}. nil = it is none.
func (n newNames) wrongKind(c *call, id string) *newName {
	kind, rest, found := strings.Cut(id, "/")
	prefixes := n.file().Rules.EntityPrefixes(c.namespace())
	for _, k := range n.file().Static.Kinds {
		prefixes = append(prefixes, k.Prefix)
	}
	if !found || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(id, p) }) {
		return nil
	}
	near := limiter.Misspelled(kind+"/", prefixes)
	if near == "" {
		return nil
	}
	return &newName{fmt.Sprintf("entity %s is new, and no rule takes from %s…", api.Name(id), api.Name(kind+"/")), near + rest}
}

// newResource returns a resource that no rule takes from. Where a rule takes from any, it is a new one whose name is a
// misspelling of a known one. nil = neither, or it is allowed.
func (n newNames) newResource(c *call, name string) (*newName, error) {
	allowed, err := c.allows(api.NewResource)
	if err != nil || allowed || name == "" || name == limiter.DefaultResource || n.file == nil {
		return nil, err
	}
	rules := n.file().resources(c.namespace())
	if rules.Has(name) {
		return nil, nil //nolint:nilnil // it is no new name
	}
	there, err := n.hasResource(c, name)
	if err != nil || there {
		return nil, err
	}
	if cut := cutName("resource ", name); cut != nil {
		return cut, nil
	}
	known, err := n.resources(c, rules.Names)
	if err != nil {
		return nil, err
	}
	near := limiter.Misspelled(name, known)
	switch {
	case rules.Open() && near == "":
		return nil, nil //nolint:nilnil // a rule takes from it
	case rules.Open():
		return &newName{fmt.Sprintf("resource %s is new", api.Name(name)), near}, nil
	}
	return &newName{fmt.Sprintf("no rule takes from resource %s in namespace %s", api.Name(name), api.Name(c.namespace())), limiter.ClosestName(name, known)}, nil
}
