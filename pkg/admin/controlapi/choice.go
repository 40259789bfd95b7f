package controlapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxChoices is the most buckets that a refusal names.
const maxChoices = 10

// wanted identifies the bucket of a request. Without a variant it is the only one of the entity for
// the resource, or the only one that has the limit.
type wanted struct {
	entity, resource api.Name
	limit            string // "" = any
	variant          string // "" = the only one
}

// key returns the key of the bucket, without a variant that of the ordinary one.
func (w *wanted) key(namespace string) (limiter.BucketKey, error) {
	key := limiter.BucketKey{Namespace: namespace, Entity: string(w.entity), Resource: string(w.resource)}
	if w.entity == "" || w.resource == "" {
		return key, invalid("entity and resource name the bucket: give both")
	}
	if w.variant == "" {
		return key, nil
	}
	if key.ParseVariant(w.variant) != nil {
		return key, invalid("the variant is %.100q; it must be 16 hexadecimal digits, as the list of buckets has it, or %s for the ordinary bucket", w.variant, api.OrdinaryVariant)
	}
	return key, nil
}

// fits reports whether a bucket may be the wanted one.
func (w *wanted) fits(b *limiter.BucketState) bool {
	return (w.variant == "" || w.variant == b.Key.VariantText()) &&
		(w.limit == "" || slices.ContainsFunc(b.Limits, func(l limiter.LimitState) bool { return l.Limit.Name == w.limit }))
}

// meant returns the wanted bucket, nil if the list does not have it. It refuses if the list has
// several. If no bucket has the limit, it returns the only bucket, so that the refusal can name its
// limits.
func (a balances) meant(c *call, now time.Time, w *wanted) (*limiter.BucketState, error) {
	all, err := a.some(c, now, limiter.BucketFilter{Entity: string(w.entity), Resource: string(w.resource)})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		if all, err = a.recent(c, now, w); err != nil {
			return nil, err
		}
	}
	for i := range all { // the store may keep long names in another form, by which it finds no bucket
		all[i].Key.Entity, all[i].Key.Resource = string(w.entity), string(w.resource)
	}
	if w.variant == "" { // a bucket of a shadow rule or of another window than the present one needs its variant
		all = slices.DeleteFunc(all, func(b limiter.BucketState) bool {
			return b.Key.Shadow() || !b.Key.Window.Has(now)
		})
	}
	fitting := slices.DeleteFunc(slices.Clone(all), func(b limiter.BucketState) bool { return !w.fits(&b) })
	switch {
	case len(fitting) == 1:
		return &fitting[0], nil
	case len(fitting) == 0 && (len(all) == 0 || w.variant != ""):
		return nil, nil //nolint:nilnil // none is no error: the caller may have a newer one
	case len(fitting) == 0 && len(all) == 1:
		return &all[0], nil
	case len(fitting) == 0:
		fitting = all
	}
	return nil, a.ambiguous(c, w, fitting)
}

// some returns buckets of one page, which are more than a choice can name.
func (a balances) some(c *call, now time.Time, f limiter.BucketFilter) ([]limiter.BucketState, error) {
	page, err := a.buckets.ListBuckets(c.ctx(), now, c.namespace(), f, limiter.Page{Size: limiter.MaxPage})
	return page.Items, err
}

// maxRecent is the most variants that are looked up beside a list.
const maxRecent = 50

// recent returns the buckets that the list of a fleet does not have yet: their first request was in the last
// second. They are the ordinary one, and those of plans and rules, in order of the variants.
func (a balances) recent(c *call, now time.Time, w *wanted) ([]limiter.BucketState, error) {
	variants := append([]uint64{0}, slices.Sorted(maps.Keys(a.variants(c.namespace())))...)
	var all []limiter.BucketState
	for _, variant := range variants[:min(len(variants), maxRecent)] {
		key := limiter.BucketKey{Namespace: c.namespace(), Entity: string(w.entity), Resource: string(w.resource), Variant: variant}
		found, err := a.look(c, now, key)
		if err != nil {
			return nil, err
		}
		if found != nil {
			all = append(all, *found)
		}
	}
	return all, nil
}

// look returns the bucket of a key; nil if there is none.
func (a balances) look(c *call, now time.Time, key limiter.BucketKey) (*limiter.BucketState, error) {
	done, err := a.buckets.AdjustBucket(c.ctx(), now, limiter.Adjustment{Bucket: key, Kind: limiter.AdjustTopUp, DryRun: true})
	if err != nil || !done.Found {
		return nil, err
	}
	return &done.Before, nil
}

// ambiguous refuses a request that several buckets fit, and names them.
func (a balances) ambiguous(c *call, w *wanted, fitting []limiter.BucketState) error {
	slices.SortFunc(fitting, func(a, b limiter.BucketState) int {
		return strings.Compare(a.Key.VariantText(), b.Key.VariantText())
	})
	more := ""
	if n := len(fitting); n > maxChoices {
		fitting, more = fitting[:maxChoices], fmt.Sprintf(", and %d more", n-maxChoices)
	}
	choices, texts := make([]api.Bucket, len(fitting)), make([]string, len(fitting))
	for i := range fitting {
		choices[i] = *a.sourced(c, c.now(), &fitting[i])
		choices[i].Variant = fitting[i].Key.VariantText()
		texts[i] = choiceText(&choices[i])
	}
	p := problem(http.StatusConflict, api.Ambiguous, fmt.Sprintf("entity %s has several buckets for resource %s in namespace %s: say which by its variant: %s%s",
		w.entity, w.resource, api.Name(c.namespace()), strings.Join(texts, "; "), more))
	p.Choices = choices
	return p
}

// choiceText describes a bucket: its variant, the origin of its limits, and its balances.
func choiceText(b *api.Bucket) string {
	limits := make([]string, 0, len(b.Limits))
	for _, l := range b.Limits {
		if l.Available != nil {
			text := fmt.Sprintf("%s %s has %s", l.Name, l.Limit, l.Available)
			if l.Source != "" {
				text += ", " + l.Source
			}
			limits = append(limits, text)
		}
	}
	text := b.Variant
	if b.Source != "" {
		text += " of " + b.Source
	}
	return text + " (" + strings.Join(limits, ", ") + ")"
}

// none says that there is no such bucket, and names the others.
func (a balances) none(c *call, w *wanted) error {
	now := c.now()
	all, err := a.some(c, now, limiter.BucketFilter{Entity: string(w.entity), Resource: string(w.resource)})
	if err != nil {
		return err
	}
	if len(all) > 0 && w.variant != "" {
		return notFound("entity %s has no bucket of variant %s for resource %s in namespace %s; it has %s",
			w.entity, w.variant, w.resource, api.Name(c.namespace()), variantsOf(all))
	}
	if len(all) > 0 {
		return notFound("entity %s has no bucket in force for resource %s in namespace %s; it has those of rules in shadow mode, or of other windows: give the variant %s",
			w.entity, w.resource, api.Name(c.namespace()), variantsOf(all))
	}
	others, err := a.some(c, now, limiter.BucketFilter{Entity: string(w.entity)})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("entity %s has no bucket for resource %s in namespace %s: none is in use, so a request finds a full one", w.entity, w.resource, api.Name(c.namespace()))
	if len(others) > 0 {
		text += "; it has buckets for " + resourcesOf(others)
	}
	return notFound("%s", text)
}

// variantsOf names the variants of buckets.
func variantsOf(all []limiter.BucketState) string {
	return someOf(all, func(b *limiter.BucketState) string { return b.Key.VariantText() })
}

// resourcesOf names the resources of buckets.
func resourcesOf(all []limiter.BucketState) string {
	return someOf(all, func(b *limiter.BucketState) string { return api.Name(b.Key.Resource).String() })
}

// someOf lists names of buckets, each once, in order.
func someOf(all []limiter.BucketState, name func(*limiter.BucketState) string) string {
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, name(&all[i]))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if n := len(names); n > maxChoices {
		names = append(names[:maxChoices], fmt.Sprintf("%d more", n-maxChoices))
	}
	return strings.Join(names, ", ")
}
