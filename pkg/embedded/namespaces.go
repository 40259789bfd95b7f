package embedded

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// namespaces implements limiter.Directory for the namespaces.
type namespaces struct {
	catalog *catalog
	table   *table
	disk    *disk // nil without a file
}

// Namespaces yields the names of the namespaces that were ever in use, in order, also of those that
// were purged. Without a file it yields those that were changed, or have buckets now. An error is
// the last item; more names may follow it.
func (n *namespaces) Namespaces(ctx context.Context) iter.Seq2[string, error] {
	return n.each(ctx, func() ([]string, error) {
		var names []string
		if n.disk != nil {
			err := n.disk.file.View(func(tx *datafile.Tx) error {
				return tx.Each(datafile.Namespaces, nil, func(_, value []byte) error {
					names = append(names, namespaceIn(value))
					return nil
				})
			})
			return names, unavailable(err)
		}
		n.catalog.mu.RLock()
		defer n.catalog.mu.RUnlock()
		names = slices.Collect(maps.Keys(n.catalog.names))
		return append(names, n.table.namesOfBuckets()...), nil
	})
}

// each yields the names that find returns, each once and in order.
func (n *namespaces) each(ctx context.Context, find func() ([]string, error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := n.catalog.usable(ctx)
		if err == nil {
			names, err = find()
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

// ListNamespaces implements limiter.Directory, in order of names. A namespace has no ID.
func (n *namespaces) ListNamespaces(ctx context.Context, f limiter.NamespaceFilter, p limiter.Page) (page limiter.PageOf[limiter.Namespace], err error) {
	p, err = p.Checked()
	if err != nil {
		return page, err
	}
	after, err := base64.RawURLEncoding.DecodeString(p.After)
	if err != nil || p.After != "" && (len(after) == 0 || after[0] != '.') {
		return page, errCursor(p.After)
	}
	for name, err := range n.Namespaces(ctx) {
		switch {
		case err != nil:
			return limiter.PageOf[limiter.Namespace]{}, err
		case p.After != "" && "."+name <= string(after) || !f.Selects(n.namespace(name)):
		case len(page.Items) == p.Size:
			page.Next = base64.RawURLEncoding.EncodeToString([]byte("." + page.Items[p.Size-1].Name))
			return page, nil
		default:
			page.Items = append(page.Items, n.namespace(name))
		}
	}
	return page, nil
}

// GetNamespace implements limiter.Directory.
func (n *namespaces) GetNamespace(ctx context.Context, name string) (limiter.Namespace, error) {
	err := n.catalog.usable(ctx)
	used := false
	if err == nil {
		used, err = n.everUsed(name)
	}
	if err == nil && !used {
		err = errUnknown(name)
	}
	if err != nil {
		return limiter.Namespace{}, err
	}
	return n.namespace(name), nil
}

func errUnknown(name string) error {
	return fmt.Errorf("%w: namespace %.100q was never in use", limiter.ErrNotFound, name)
}

// namespace returns a namespace that was in use.
func (n *namespaces) namespace(name string) limiter.Namespace {
	r := n.catalog.get(name, limiter.SystemLimitsRef())
	return limiter.Namespace{Name: name, State: r.State, Since: r.Since, Disabled: r.Disabled}
}

// everUsed reports whether a namespace was ever in use.
func (n *namespaces) everUsed(name string) (used bool, err error) {
	if n.disk != nil {
		row := inUse(name)
		err := n.disk.file.View(func(tx *datafile.Tx) error {
			used = tx.Get(row.table, row.key) != nil
			return nil
		})
		return used, unavailable(err)
	}
	n.catalog.mu.RLock()
	used = n.catalog.names[name]
	n.catalog.mu.RUnlock()
	return used || slices.Contains(n.table.namesOfBuckets(), name), nil
}

// usedBefore reports whether a namespace was in use before an edit, where it matters. An edit that
// creates an unused namespace is a change; other edits of its state are refused.
func (n *namespaces) usedBefore(name string, by limiter.Switch) (bool, error) {
	if !by.OfNamespace() {
		return true, nil
	}
	used, err := n.everUsed(name)
	if err == nil && !used && by != limiter.CreateNamespace {
		err = errUnknown(name)
	}
	return used, err
}
