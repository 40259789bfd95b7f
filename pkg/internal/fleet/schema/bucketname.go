package schema

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// BucketOfItem returns the bucket of an item, without its namespace, and the shard. A name that the item does not
// have in full stands as it does in the key.
func BucketOfItem(table string, k Key, item map[string]types.AttributeValue) (limiter.BucketKey, int, error) {
	r := NewReader(table, k, item)
	_, rest, _ := strings.Cut(k.PK, "/BUCKET#")
	parts := strings.Split(rest, "#")
	if len(parts) < 3 || len(parts) > 4 {
		r.Fail(AttrPK, "is that of no bucket")
		return limiter.BucketKey{}, 0, r.Fault
	}
	of := limiter.BucketKey{Entity: r.nameOf(AttrEntity, parts[0]), Resource: r.nameOf(AttrResource, parts[1])}
	shard, err := strconv.Atoi(parts[len(parts)-1])
	if err == nil && len(parts) == 4 {
		err = of.ParseVariant(parts[2])
	}
	if err != nil || shard < 0 || shard >= MaxShards {
		r.Fail(AttrPK, "is that of no bucket")
	}
	if r.Fault != nil {
		return limiter.BucketKey{}, 0, r.Fault
	}
	return of, shard, nil
}

// nameOf returns the name in an attribute, or where there is none that of a key.
func (r *Reader) nameOf(attr, inKey string) string {
	if r.Item[attr] != nil {
		return r.Text(attr)
	}
	if strings.Contains(inKey, emptyName) && inKey != emptyName {
		return inKey
	}
	name, err := unescapeAll(inKey)
	if err != nil {
		r.Fail(AttrPK, "has a name that %v", err)
	}
	return name
}
