package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Root is the parent of all entities that hold inventories. It is not stored itself.
const Root = "$MANIFEST"

// maxPart bounds the text of a part of an inventory, in bytes: with all escapes it is a body
// that the service takes.
const maxPart = 16 << 10

// part is one entity of an inventory. Its metadata has a digest for each record.
type part struct {
	id      string
	etag    string            // "" = not stored yet
	records map[string]string // digest of the content as applied, by keyOf
	size    int
	changed bool
}

// inventory has the records that a manifest made.
type inventory struct {
	name  string // of the manifest
	parts []*part
}

// IsInventory reports whether an entity is a part of the inventory of a manifest.
func IsInventory(id string) bool { return strings.HasPrefix(id, Root) }

// partID is the ID of a part. Names of manifests have no colon.
func partID(name string, i int) string { return fmt.Sprintf("%s:%s:%04d", Root, name, i) }

// inventories reads those of every manifest of a namespace, by name.
func inventories(ctx context.Context, n *api.NamespaceClient) (map[string]*inventory, error) {
	all := make(map[string]*inventory)
	list := func(p api.Page) (*api.List[api.Entity], error) { return n.ListEntities(ctx, Root, p) }
	for e, err := range api.Each(list) {
		if err != nil {
			return nil, err
		}
		fields := strings.Split(string(e.ID), ":")
		if len(fields) != 3 || fields[0] != Root {
			continue // an entity of another owner
		}
		inv := all[fields[1]]
		if inv == nil {
			inv = &inventory{name: fields[1]}
			all[fields[1]] = inv
		}
		p := &part{id: string(e.ID), etag: e.ETag, records: maps.Clone(e.Metadata)}
		if p.records == nil {
			p.records = make(map[string]string)
		}
		for key, digest := range p.records {
			p.size += len(key) + len(digest)
		}
		inv.parts = append(inv.parts, p)
	}
	return all, nil
}

// digest returns the digest of a record when it was applied; "" = the manifest does not own it.
func (v *inventory) digest(key string) string {
	for _, p := range v.parts {
		if d := p.records[key]; d != "" {
			return d
		}
	}
	return ""
}

// set notes that a record is owned, with this content.
func (v *inventory) set(key, digest string) {
	var room *part
	for _, p := range v.parts {
		if _, there := p.records[key]; there {
			p.changed = p.changed || p.records[key] != digest
			p.records[key] = digest
			return
		}
		if room == nil && p.size+len(key)+len(digest) <= maxPart {
			room = p
		}
	}
	if room == nil {
		room = &part{id: partID(v.name, v.free()), records: make(map[string]string)}
		v.parts = append(v.parts, room)
	}
	room.records[key] = digest
	room.size += len(key) + len(digest)
	room.changed = true
}

// free is a number that no part has.
func (v *inventory) free() int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(v.parts, func(p *part) bool { return p.id == partID(v.name, i) }) {
			return i
		}
	}
}

// remove notes that a record is owned no more.
func (v *inventory) remove(key string) {
	for _, p := range v.parts {
		if digest, there := p.records[key]; there {
			delete(p.records, key)
			p.size -= len(key) + len(digest)
			p.changed = true
		}
	}
}

// refs are the records that are owned, in order.
func (v *inventory) refs() ([]limiter.Ref, error) {
	var refs []limiter.Ref
	for _, p := range v.parts {
		for key := range p.records {
			ref, err := refOf(key)
			if err != nil {
				return nil, err
			}
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, order)
	return refs, nil
}

// save stores the parts that changed, and deletes empty ones.
func (v *inventory) save(ctx context.Context, n *api.NamespaceClient) error {
	kept := v.parts[:0:0]
	for _, p := range v.parts {
		if p.changed {
			if err := v.savePart(ctx, n, p); err != nil {
				return err
			}
		}
		if len(p.records) > 0 {
			kept = append(kept, p)
		}
	}
	v.parts = kept
	return nil
}

func (v *inventory) savePart(ctx context.Context, n *api.NamespaceClient, p *part) error {
	o := api.ClientOptions{IfMatch: p.etag, IfNoneMatch: p.etag == ""}
	var change *api.Change[api.Entity]
	var err error
	if len(p.records) == 0 {
		if p.etag == "" {
			return nil
		}
		change, err = n.DeleteEntity(ctx, api.Name(p.id), o)
	} else {
		e := api.Entity{ID: api.Name(p.id), Name: "inventory of manifest " + v.name, Parent: Root, Metadata: p.records}
		var put *api.EntityChange
		o.AllowNew = true // the plan was checked
		if put, err = n.PutEntity(ctx, e, o); err == nil {
			change = &put.Change
		}
	}
	if is(err, api.Precondition) {
		return fmt.Errorf("another apply of manifest %s runs, or ran meanwhile: run the command again: %w", v.name, err)
	}
	if err != nil {
		return fmt.Errorf("the inventory of manifest %s: %w", v.name, err)
	}
	p.changed = false
	if change.After != nil {
		p.etag = change.After.ETag
	}
	return nil
}

// is reports whether an error is a problem of a kind.
func is(err error, kind api.Kind) bool {
	problem, ok := errors.AsType[*api.Problem](err)
	return ok && problem.Type == kind
}
