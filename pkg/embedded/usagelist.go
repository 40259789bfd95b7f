package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// usageLog implements limiter.Usage, and compares usage with budgets.
type usageLog struct {
	table   *table
	catalog *catalog
	disk    *disk // nil without a file
}

// ListUsage implements limiter.Usage, in order of starts, up to now. A store without a file has no
// usage. Commits wait while a page reads the buckets.
func (u *usageLog) ListUsage(ctx context.Context, namespace string, f limiter.UsageFilter, p limiter.Page) (page limiter.PageOf[limiter.UsageSnapshot], err error) {
	p, err = p.Checked()
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return page, err
	}
	f.Entity, f.Resource = limiter.ShortName(f.Entity), limiter.ShortName(f.Resource)
	l := &usageList{ctx: ctx, namespace: namespace, UsageFilter: f, most: p.Size + 1, found: make(map[string]map[string]int64)}
	l.after, err = l.cursor(p.After)
	if err != nil {
		return page, err
	}
	if err := u.catalog.usable(ctx); err != nil || u.disk == nil {
		return page, err
	}
	if err := u.collectUsage(l); err != nil {
		return page, unavailable(err)
	}
	keys := l.trim()
	if len(keys) > p.Size {
		keys = keys[:p.Size]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(keys[p.Size-1]))
	}
	for _, key := range keys {
		page.Items = append(page.Items, l.snapshot(key))
	}
	return page, nil
}

// usageList is a page under construction. A snapshot has a key: that of its rows without the limit.
// So the order of keys is the order of rows.
type usageList struct {
	limiter.UsageFilter

	ctx       context.Context //nolint:containedctx // of one call
	namespace string
	after     string // key of the last snapshot of the page before; "" = none
	most      int
	found     map[string]map[string]int64 // amounts by key and limit, for hardly more than most keys
	last      string                      // no key above it is on the page; "" = not known yet
}

func (l *usageList) cursor(text string) (key string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && text != "" {
		_, err = l.parse(raw)
	}
	if err != nil {
		return "", fmt.Errorf("%w: the cursor is none of a page of this list", limiter.ErrInvalid)
	}
	return string(raw), nil
}

// parse reads the key of a snapshot.
func (l *usageList) parse(key []byte) (u limiter.UsageSnapshot, err error) {
	if len(key) < usageHead || key[0] != usageTag(l.Window) {
		return u, errFormat
	}
	r := &recordReader{Rest: key[usageHead:]}
	_ = r.Text() // the namespace
	u = limiter.UsageSnapshot{Window: l.Window, Start: usageStart(key), Entity: r.Text(), Resource: r.Text()}
	if r.Failed || len(r.Rest) > 0 {
		return u, errFormat
	}
	return u, nil
}

// snapshot returns the snapshot of a key of found.
func (l *usageList) snapshot(key string) limiter.UsageSnapshot {
	u, _ := l.parse([]byte(key)) // add has parsed or made it
	limits := l.found[key]
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if name == eventsLimit {
			u.Events = limits[name]
			continue
		}
		u.Limits = append(u.Limits, limiter.LimitUsage{Limit: name, Tokens: limits[name]})
	}
	return u
}

// add adds consumption to the snapshot of a key.
func (l *usageList) add(key string, limit string, amount int64) {
	if key <= l.after || l.last != "" && key > l.last {
		return
	}
	limits := l.found[key]
	if limits == nil {
		if len(l.found) == 2*l.most {
			l.trim()
			if key > l.last {
				return
			}
		}
		limits = make(map[string]int64)
		l.found[key] = limits
	}
	limits[limit] = limiter.SaturatingSum(limits[limit], amount)
}

// trim keeps the first keys, and returns them in order.
func (l *usageList) trim() []string {
	keys := slices.Sorted(maps.Keys(l.found))
	if len(keys) < l.most {
		return keys
	}
	l.last = keys[l.most-1]
	for _, key := range keys[l.most:] {
		delete(l.found, key)
	}
	return keys[:l.most]
}

// collectUsage adds the consumption of buckets and of rows, as of one moment. Consumption moves
// from buckets to rows by a commit.
func (u *usageLog) collectUsage(l *usageList) error {
	u.disk.moving.Lock()
	release := sync.OnceFunc(u.disk.moving.Unlock)
	defer release()
	for i := range u.table.shards {
		if err := contextErr(l.ctx); err != nil {
			return err
		}
		sh := &u.table.shards[i]
		sh.mu.Lock()
		for _, b := range sh.buckets {
			for ; b != nil; b = b.next {
				l.bucket(b)
			}
		}
		sh.mu.Unlock()
	}
	return u.disk.file.View(func(tx *datafile.Tx) error {
		release()
		return l.rows(tx)
	})
}

// bucket adds the consumption of a bucket that no row has. The shard must be locked.
func (l *usageList) bucket(b *bucket) {
	if l.Entity != "" && b.entity != l.Entity || b.namespace.Value() != l.namespace || l.Resource != "" && b.resource.Value() != l.Resource {
		return
	}
	b.consumption(func(c consumed) {
		start := l.Window.Start(time.UnixMilli(c.hour * hourMs))
		if c.amount != 0 && l.Selects(start) {
			r := usageRow{namespace: l.namespace, entity: b.entity, resource: b.resource.Value()}
			key := usageKey(l.Window, start, &r)
			l.add(string(key[:len(key)-1]), c.limit, c.amount) // without the length of no limit
		}
	})
}

// rows adds the rows, window by window.
func (l *usageList) rows(tx *datafile.Tx) error {
	from := usageBegin(l.Window, time.Unix(0, 0))
	if l.From.Unix() > 0 {
		from = usageBegin(l.Window, l.From.Add(time.Second-1))
	}
	if begin := l.after[:min(len(l.after), usageHead)]; begin > string(from) {
		from = []byte(begin)
	}
	for {
		var found []byte
		err := tx.EachFrom(datafile.Usage, from[:1], from, func(key, _ []byte) error {
			found = slices.Clone(key)
			return errEnough
		})
		if enough(err) != nil || len(found) < usageHead {
			return enough(err)
		}
		start := usageStart(found)
		if !l.Selects(start) || l.last != "" && string(found[:usageHead]) > l.last {
			return nil
		}
		if err := l.window(tx, start); err != nil {
			return enough(err)
		}
		from = usageBegin(l.Window, start.Add(time.Second))
	}
}

// window adds the rows of one window. errEnough reports that no later window can be on the page.
func (l *usageList) window(tx *datafile.Tx, start time.Time) error {
	prefix := appendText(usageBegin(l.Window, start), limiter.ShortName(l.namespace))
	if l.Entity != "" {
		prefix = appendText(prefix, l.Entity)
		if l.Resource != "" {
			prefix = appendText(prefix, l.Resource)
		}
	}
	return tx.EachFrom(datafile.Usage, prefix, []byte(l.after), func(key, value []byte) error {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		r := &recordReader{Rest: key[usageHead:]}
		_, _, resource := r.Text(), r.Text(), r.Text()
		head := key[:len(key)-len(r.Rest)]
		limit := r.Text()
		amount, err := usageValue(value)
		if err != nil || r.Failed {
			return fmt.Errorf("a row of usage: %w", errFormat)
		}
		if l.Resource != "" && resource != l.Resource {
			return nil
		}
		if l.last == "" && len(l.found) >= l.most && l.found[string(head)] == nil {
			l.trim()
		}
		if l.last != "" && bytes.Compare(head, []byte(l.last)) > 0 {
			return errEnough
		}
		l.add(string(head), limit, amount)
		return nil
	})
}
