package embedded

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// balances implements limiter.Buckets.
type balances struct {
	table       *table
	catalog     *catalog
	settlements *settlements
	disk        *disk         // nil without a file
	once        chan struct{} // has an element while an adjustment with a Once is under way
}

var _ limiter.Buckets = (*balances)(nil)

// ListBuckets implements limiter.Buckets, shard by shard. A page reads no more buckets than it
// takes to fill it. A cursor is valid for this store until the store is closed.
func (b *balances) ListBuckets(ctx context.Context, now time.Time, namespace string, f limiter.BucketFilter, p limiter.Page) (page limiter.PageOf[limiter.BucketState], err error) {
	p, err = p.Checked()
	if err != nil {
		return page, err
	}
	at, err := b.bucketCursor(p.After)
	if err == nil {
		err = b.catalog.usable(ctx)
	}
	if err != nil {
		return page, err
	}
	f.Entity, f.Resource = limiter.ShortName(f.Entity), limiter.ShortName(f.Resource)
	for ; at.shard < shardCount; at = (place{shard: at.shard + 1}) {
		if err := contextErr(ctx); err != nil {
			return page, err
		}
		room := p.Size - len(page.Items)
		found := b.inShard(at, now.UnixMilli(), namespace, f, room+1)
		for _, b := range found[:min(len(found), room)] {
			page.Items = append(page.Items, b.state)
		}
		if len(found) > room {
			last := at.after
			if room > 0 {
				last = found[room-1].identity
			}
			page.Next = b.cursorOf(place{shard: at.shard, after: last})
			return page, nil
		}
	}
	return page, nil
}

// place is where a page of buckets ended: in a shard, after an identity.
type place struct {
	shard uint64
	after string
}

// identifiedBucket is a bucket and the identity by which it is ordered.
type identifiedBucket struct {
	identity string
	state    limiter.BucketState
}

// inShard returns the first selected buckets of a shard behind a place, at most so many.
func (b *balances) inShard(at place, now int64, namespace string, f limiter.BucketFilter, most int) []identifiedBucket {
	first := least[identifiedBucket]{most: most, compare: func(a, b identifiedBucket) int { return cmp.Compare(a.identity, b.identity) }}
	sh := &b.table.shards[at.shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, b := range sh.buckets {
		for ; b != nil; b = b.next {
			if f.Entity != "" && b.entity != f.Entity { // first, because it needs no more memory than the bucket's
				continue
			}
			key := limiter.BucketKey{Namespace: b.namespace.Value(), Entity: b.entity, Resource: b.resource.Value(), Variant: b.variant, Window: b.window.value()}
			if key.Namespace != namespace || f.Resource != "" && key.Resource != f.Resource {
				continue
			}
			if identity := string(b.identity()); identity > at.after {
				first.add(identifiedBucket{identity, b.state(key, now)})
			}
		}
	}
	return first.sorted()
}

// A cursor has a hash that identifies this store, the shard, and the identity.
func (b *balances) cursorOf(at place) string {
	buf := binary.BigEndian.AppendUint64(nil, maphash.String(b.table.seed, "cursor"))
	buf = append(binary.AppendUvarint(buf, at.shard), at.after...)
	return base64.RawURLEncoding.EncodeToString(buf)
}

func (b *balances) bucketCursor(text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	buf, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(buf) > 8 && binary.BigEndian.Uint64(buf) == maphash.String(b.table.seed, "cursor") {
		if n, size := binary.Uvarint(buf[8:]); size > 0 && n < shardCount {
			return place{n, string(buf[8+size:])}, nil
		}
	}
	return place{}, fmt.Errorf("%w: %.100q is no cursor of a page of this list; the service may have started again", limiter.ErrInvalid, text)
}
