package catalog

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestReplicasOfVersionOneAreSeen: those that write meanwhile, by name, and only those; not
// replicas of this version, nor any in a namespace that is raised.
func TestReplicasOfVersionOneAreSeen(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	all := make([]schema.Namespace, 0, 2)
	for name, form := range map[string]int{"old": schema.FormOld, "new": schema.FormNow} {
		ns, err := c.table.register(t.Context(), schema.Namespace{Name: name, Form: form}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ns)
	}
	put := func(entity string, attrs map[string]string) {
		t.Helper()
		for _, ns := range all {
			item := schema.NewBucketItem(ns.ID, limiter.BucketKey{Entity: entity, Resource: "r"}, 0)
			for attr, id := range attrs {
				item[attr] = &types.AttributeValueMemberS{Value: id}
			}
			if ns.Form == schema.FormNow { // looked at by nobody
				item["lw1"] = &types.AttributeValueMemberS{Value: time.Now().String()}
			}
			if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.name, Item: item}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("a", map[string]string{"rf": "", "lw0": "AAAAAAAAA:100", "lc3": "BBBBBBBBB:100"})
	put("b", map[string]string{"rf": "", "lw0": "AAAAAAAAA:200"})
	put("form 2", map[string]string{"lw0": "CCCCCCCCC:100"})
	for _, test := range []struct {
		name string
		wait func(context.Context) error
		want []string
	}{
		{"no write", func(context.Context) error { return nil }, nil},
		{"writes of the present version", func(context.Context) error {
			put("b", map[string]string{"rf": "", "lw0": "0a1b2c3d:9z"})
			return nil
		}, nil},
		{"writes of both", func(context.Context) error {
			put("a", map[string]string{"rf": "", "lw0": "AAAAAAAAA:101", "lc3": "DDDDDDDDD:1ab"})
			put("form 2", map[string]string{"lw0": "CCCCCCCCC:101"})
			return nil
		}, []string{"AAAAAAAAA", "DDDDDDDDD"}},
	} {
		got, err := WatchOld(t.Context(), db, c.table.name, all, test.wait)
		if err != nil || got.Looked != 3 || got.Old != 2 || !slices.Equal(got.Replicas, test.want) {
			t.Errorf("%s: %+v, %v; want %q in 2 of 3 buckets", test.name, got, err, test.want)
		}
	}
	cut := errors.New("cut short")
	if _, err := WatchOld(t.Context(), db, c.table.name, all, func(context.Context) error { return cut }); !errors.Is(err, cut) {
		t.Errorf("a wait that ends early: %v", err)
	}
}
