package schema

import (
	"maps"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A snapshot is found under the names that were consumed of, whatever they are, and has the
// attributes of limits with any legal name.
func TestUsageIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entity, resource := anyName().Draw(t, "entity"), anyName().Draw(t, "resource")
		w := rapid.SampledFrom(limiter.UsageWindows()).Draw(t, "window")
		at := time.Unix(rapid.Int64Range(0, MaxTTL).Draw(t, "at"), 0).UTC()
		change := UsageChange{
			Of:   UsageOf{Entity: EscapeName(entity), Resource: EscapeName(resource), Window: w, Start: w.Start(at)},
			Used: map[string]int64{}, Events: 3, Shard: "shardId-1", Names: UsageNames(entity, resource),
		}
		change.First, _ = NewPosition("7")
		change.Last, _ = NewPosition("30")
		want := limiter.UsageSnapshot{Entity: entity, Resource: resource, Window: w, Start: w.Start(at), Events: 3}
		for _, limit := range []string{"ttl", "u", "window"} {
			change.Used[limit] = rapid.Int64().Draw(t, limit)
			want.Limits = append(want.Limits, limiter.LimitUsage{Limit: limit, Tokens: change.Used[limit]})
		}
		for name, long := range map[*string]string{&want.Entity: entity, &want.Resource: resource} {
			if len(long) > MaxNameAttribute {
				*name = EscapeName(long)
			}
		}
		item := applied(change.Input("t", someNS))
		got, err := ParseUsage("t", item)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("error %v; (-written +read):\n%s", err, diff)
		}
		if diff := cmp.Diff(map[string]Position{"shardId-1": change.Last}, UsagePositions(item)); diff != "" {
			t.Fatalf("positions (-want +got):\n%s", diff)
		}
	})
}

// applied is the item that a write without a removal makes where there is none.
func applied(in *dynamodb.UpdateItemInput) record {
	item := maps.Clone(in.Key)
	for _, part := range regexp.MustCompile(`(#\d+)[= ]+(:\d+)`).FindAllStringSubmatch(*in.UpdateExpression, -1) {
		item[in.ExpressionAttributeNames[part[1]]] = in.ExpressionAttributeValues[part[2]]
	}
	return item
}

func TestPositionsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[1-9][0-9]{0,39}`).Draw(t, "a"), rapid.StringMatching(`[1-9][0-9]{0,39}`).Draw(t, "b")
		x, okX := NewPosition(a)
		y, okY := NewPosition(b)
		m, _ := new(big.Int).SetString(a, 10)
		n, _ := new(big.Int).SetString(b, 10)
		if !okX || !okY || m.Cmp(n) != strings.Compare(string(x), string(y)) {
			t.Fatalf("%s and %s: positions %q and %q", a, b, x, y)
		}
	})
	for _, bad := range []string{"", "-1", "12a", strings.Repeat("1", 41)} {
		if p, ok := NewPosition(bad); ok {
			t.Errorf("%q is position %q", bad, p)
		}
	}
}
