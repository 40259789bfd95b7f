package dynamo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/catalog"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Upgrade brings the namespaces of a table to form 2 of the items of buckets, which only
// replicas of this version and later ones read. It is made by [NewUpgrade].
type Upgrade struct {
	client     Client
	table      string
	namespaces []schema.Namespace
	versions   []ComponentVersion
}

// NewUpgrade reads which namespaces a table has. It changes nothing. The table must be as
// [CheckTable] wants it; errors are those of [CheckTable] and of [Store.Read].
func NewUpgrade(ctx context.Context, client Client, table string) (*Upgrade, error) {
	if err := CheckTable(ctx, client, table); err != nil {
		return nil, err
	}
	all, err := catalog.Namespaces(ctx, client, table)
	if err != nil {
		return nil, err
	}
	versions, err := catalog.ComponentVersions(ctx, client, table)
	if err != nil {
		return nil, err
	}
	return &Upgrade{client: client, table: table, namespaces: all, versions: versions}, nil
}

// Pending returns the names of the namespaces that have form 1, in the order in which Run
// raises them, and how many have form 2 already.
func (u *Upgrade) Pending() (names []string, done int) {
	for i := range u.namespaces {
		if ns := &u.namespaces[i]; ns.Form == schema.FormOld {
			names = append(names, ns.Title())
		} else {
			done++
		}
	}
	return names, done
}

// Older returns the parts of the table's layout whose version Run raises.
func (u *Upgrade) Older() []ComponentVersion {
	return slices.DeleteFunc(slices.Clone(u.versions), func(v ComponentVersion) bool { return !v.Older() })
}

// OldReplicas says which replicas of version 1, the one before this, wrote to buckets of a table.
type OldReplicas = catalog.OldReplicas

// Watch looks for replicas of the version before for a time, above 0, in the namespaces that
// have form 1. A replica that wrote to none of the buckets in that time is not seen.
func (u *Upgrade) Watch(ctx context.Context, d time.Duration) (OldReplicas, error) {
	return catalog.WatchOld(ctx, u.client, u.table, u.namespaces, catalog.Wait(d))
}

// Run records the versions of this program in the table, so that older programs refuse it.
// Then it raises each namespace that has form 1, and calls raised after each. From then on each
// item comes into form 2 by the first write that touches it, once no lease of the version
// before is out. Run can be interrupted at any point and run again.
func (u *Upgrade) Run(ctx context.Context, raised func(name string)) error {
	if err := catalog.RaiseComponents(ctx, u.client, u.table); err != nil {
		return err
	}
	for i := range u.namespaces {
		ns := &u.namespaces[i]
		if ns.Form != schema.FormOld {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
		}
		if err := catalog.RaiseForm(ctx, u.client, u.table, *ns); err != nil {
			return err
		}
		ns.Form = schema.FormNow
		raised(ns.Title())
	}
	return nil
}
