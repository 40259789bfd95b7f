package migration

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table answers with pages of items, each of which says that there is another one behind it.
type table struct {
	pages [][]map[string]types.AttributeValue
	stuck bool // the last page is the next one, too
	hangs bool
	asked int
}

func (f *table) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: attributes(map[string]any{"schema_version": "0.10.0"})}, nil
}

func (f *table) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if f.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.asked++
	out := &dynamodb.ScanOutput{Items: f.pages[min(f.asked, len(f.pages))-1]}
	if f.asked < len(f.pages) || f.stuck {
		out.LastEvaluatedKey = attributes(map[string]any{"PK": min(f.asked, len(f.pages))})
	}
	return out, nil
}

// row makes an item of a table from its keys and texts, numbers and flags.
func row(pk, sk string, all map[string]any) map[string]types.AttributeValue {
	i := attributes(all)
	maps.Copy(i, attributes(map[string]any{"PK": pk, "SK": sk}))
	return i
}

// with returns attributes with one changed; nil = without it.
func with(all map[string]any, name string, value any) map[string]any {
	all = maps.Clone(all)
	all[name] = value
	if value == nil {
		delete(all, name)
	}
	return all
}

// No part of an item that is not as the package writes it is left out in silence. A line
// names its place and the correct form.
func TestDamagedItems(t *testing.T) {
	limit := map[string]any{"l_a_cp": 5, "l_a_ra": 1, "l_a_rp": 60}
	full := map[string]any{"shard_count": 1, "rf": bucketTime, "b_a_tk": 0, "b_a_cp": 60_000, "b_a_ra": 1, "b_a_rp": 86_400_000}
	for name, tt := range map[string]struct {
		pk, sk string
		item   map[string]any
		want   string // the one loss, or a part of the reported losses
	}{
		"in order":          {"n/ENTITY#e", "#META", map[string]any{"name": "E", "parent_id": "p", "cascade": true}, ""},
		"parent":            {"n/ENTITY#e", "#META", map[string]any{"parent_id": 5}, `namespace "default", entity "e" has "parent_id", which is left out: it is a number and must be a text`},
		"cascade":           {"n/ENTITY#e", "#META", map[string]any{"parent_id": "p", "cascade": "yes"}, `entity "e" has "cascade", which is left out: it is a text and must be true or false`},
		"metadata":          {"n/ENTITY#e", "#META", map[string]any{"metadata": "{}"}, `must be a map`},
		"no capacity":       {"n/ENTITY#e", "#CONFIG#r", with(limit, "l_a_cp", nil), `limit "a" of entity "e" for resource "r" is left out: l_a_cp`},
		"burst":             {"n/ENTITY#e", "#CONFIG#r", with(limit, "l_a_bx", "NaN"), `l_a_bx must be whole numbers`},
		"soft":              {"n/ENTITY#e", "#CONFIG#r", with(limit, "l_a_soft", "true"), `limit "a" of entity "e" for resource "r" has "l_a_soft"`},
		"disabled":          {"n/RESOURCE#r", "#CONFIG", with(limit, "disabled", 1), `resource "r" has "disabled"`},
		"policy":            {"n/SYSTEM#", "#CONFIG", with(limit, "on_unavailable", 1), `the system has "on_unavailable"`},
		"full":              {"n/BUCKET#e#r#0", "#STATE", full, ""},
		"no time":           {"n/BUCKET#e#r#0", "#STATE", with(full, "rf", nil), `the balance of entity "e" for resource "r" is taken for full: rf must be`},
		"no balance":        {"n/BUCKET#e#r#0", "#STATE", with(full, "b_a_tk", nil), `limit "a" of the balance of entity "e" for resource "r" is taken for full: b_a_tk`},
		"balance":           {"n/BUCKET#e#r#0", "#STATE", with(full, "b_a_tk", "NaN"), `b_a_rp must be whole numbers`},
		"huge debt":         {"n/BUCKET#e#r#0", "#STATE", with(full, "b_a_tk", -9_200_000_000_000_000_000), `it must be -1000000000000000000 to`},
		"huge capacity":     {"n/BUCKET#e#r#0", "#STATE", with(full, "b_a_cp", 9_200_000_000_000_000_000), `is not in 1 to`},
		"shards":            {"n/BUCKET#e#r#0", "#STATE", with(full, "shard_count", 1<<40), `is read as one of 1 shard: shard_count must be`},
		"unknown":           {"n/OTHER#\x1b[31m", "#META", nil, `items of an unknown kind, the first with the key ["n/OTHER#\x1b[31m" "#META"]`},
		"other layout":      {"n/ENTITY#e", "#BUCKET#r", full, `records and buckets of before an upgrade`},
		"not registered":    {"m/ENTITY#e", "#META", nil, `the namespace with id "m" is left out (records and buckets: 1): the table does not register it`},
		"without a name":    {"nameless/ENTITY#e", "#META", nil, `the namespace with id "nameless" is left out (records and buckets: 1): the table has no name for it`},
		"two of one name":   {"b/ENTITY#e", "#META", nil, `the namespace with id "b" is left out (records and buckets: 1): another one has its name "b", too`},
		"on its way out":    {"purged/ENTITY#e", "#META", nil, `records of deleted namespaces`},
		"before namespaces": {"ENTITY#e", "#META", nil, `records and buckets of before an upgrade`},
	} {
		t.Run(name, func(t *testing.T) {
			registered := []map[string]types.AttributeValue{
				row("_/SYSTEM#", "#NSID#n", map[string]any{"namespace_name": "default", "status": "active"}),
				row("_/SYSTEM#", "#NSID#nameless", map[string]any{"namespace_name": 5, "status": "active"}),
				row("_/SYSTEM#", "#NSID#b", map[string]any{"namespace_name": "b", "status": "active"}),
				row("_/SYSTEM#", "#NSID#c", map[string]any{"namespace_name": "b", "status": "active"}),
				row("_/SYSTEM#", "#NSID#purged", map[string]any{"namespace_name": "p", "status": "purging"}),
			}
			f := &table{pages: [][]map[string]types.AttributeValue{registered, {row(tt.pk, tt.sk, tt.item)}}}
			_, set, err := Read(t.Context(), f, "t", ReadOptions{Now: time.UnixMilli(bucketTime)})
			if err != nil {
				t.Fatal(err)
			}
			told := make([]string, 0, 2)
			for _, l := range set.Losses {
				told = append(told, l.String())
			}
			for _, c := range set.Ignored {
				told = append(told, c.Kind)
			}
			if got := strings.Join(told, "\n"); len(told) > 1 || !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A page that ends where it began would come again for ever.
func TestPageWithoutEnd(t *testing.T) {
	f := &table{pages: [][]map[string]types.AttributeValue{nil, nil}, stuck: true}
	if _, _, err := Read(t.Context(), f, "t", ReadOptions{}); err == nil || !strings.Contains(err.Error(), "ends where it began") || f.asked != 3 {
		t.Errorf("got %v after %d pages", err, f.asked)
	}
}

// A table that hangs is an error after a time.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, _, err := Read(t.Context(), &table{hangs: true}, "t", ReadOptions{})
		if took := time.Since(began); !errors.Is(err, errPatience) || took != patience {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

// A version goes to the terminal as it is, so it is a number.
func TestVersionOfNumbers(t *testing.T) {
	if _, _, err := checkSchema("t", "0.10.\x1b[31m"); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %q", err)
	}
}

// Strings beside other types are taken, and those others are reported in order.
func TestStringMap(t *testing.T) {
	m := &types.AttributeValueMemberM{Value: attributes(map[string]any{"c": 1, "b": "x", "a": 2})}
	texts, others := item{"m": m}.stringMap("m")
	if len(texts) != 1 || texts["b"] != "x" || !slices.Equal(others, []string{"a", "c"}) {
		t.Errorf("%v, %v", texts, others)
	}
}
