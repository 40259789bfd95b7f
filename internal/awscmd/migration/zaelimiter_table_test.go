package migration

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/zaetest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// records are those of every version, as lines.
func records() []string {
	return []string{
		`default: the system: rpm 100/hour burst 150, on_unavailable deny`,
		`default: resource "gpt-4": rpm 50/minute, tpm 10_000/hour, alone`,
		`default: entity "acme": name "Acme, Inc.", parent "", cascade false, metadata of 2 map[plan:gold team:search]`,
		`default: entity "user-0": name "", parent "", cascade false, metadata of 0`,
		`default: entity "user-1": name "", parent "", cascade false, metadata of 0`,
		`default: entity "acme-key": name "", parent "acme", cascade true, metadata of 0`,
		`default: entity "lonely": name "", parent "never-made", cascade false, metadata of 0`,
		`default: entity "acme" for resource "_default_": rpm 40/minute, alone`,
		`default: entity "acme" for resource "gpt-4": rpm 500/day, alone`,
	}
}

// Tables of each layout, made by the package itself, are read in full.
func TestRead(t *testing.T) {
	server := dynamotest.Start(t)
	client := server.Client(t)
	for _, version := range zaetest.Versions() {
		t.Run(version, func(t *testing.T) {
			table := dynamotest.TableName(t)
			zaetest.MakeTable(t, version, server.URL, table, 2)
			schema, set, err := Read(t.Context(), client, table, ReadOptions{Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"0.9.0": "0.8.0", "0.10.0": "0.8.0", "0.10.1": "0.9.0", "0.17.0": "0.10.0"}
			if schema != want[version] {
				t.Errorf("schema %s, want %s", schema, want[version])
			}
			if diff := cmp.Diff(wantLines(version), lines(set)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(wantLosses(version), losses(set)); diff != "" {
				t.Error(diff)
			}
			checkBalances(t, set)
		})
	}
}

func wantLines(version string) []string {
	want := records()
	switch version {
	case "0.9.0": // without namespaces
		return want
	case zaetest.Newest:
		want = []string{
			want[0], `default: resource "disabled": rpm 10/minute, alone`, want[1],
			`default: resource "nightly": rpm 10/minute, alone`, `default: resource "windowed": rpm 10/minute, alone`,
			want[2], want[3], want[4], want[5], want[6], want[7], want[8],
			`default: entity "acme-key" for resource "apart": rpm 30/minute, alone`,
			`default: entity "soft" for resource "gpt-4": rpm unlimited, alone`,
		}
	}
	return append(want, `tenant-b: entity "only": name "tenant-b", parent "", cascade false, metadata of 0`)
}

func wantLosses(version string) []string {
	if version != zaetest.Newest {
		return []string{}
	}
	return []string{
		`namespace "default", entity "acme-key" for resource "apart" has a cascade of its own, which is not taken over: the entity's stands for each resource`,
		`namespace "default", limit "day" of resource "quota" is left out: it is a quota that is reset at a time, and limits here refill all the time`,
		`namespace "default", limit "rpm" of entity "soft" for resource "gpt-4" becomes unlimited: it was counted and never enforced`,
		`namespace "default", limit "rpm" of resource "nightly" stands at all hours with the numbers outside of its schedule: there are no schedules here`,
		`namespace "default", limit "session" of resource "windowed" is left out: it is a quota that is reset at a time, and limits here refill all the time`,
		`namespace "default", resource "disabled" is disabled, which is not taken over: disable it again`,
	}
}

func lines(set *Set) []string {
	var all []string
	for _, ns := range set.Namespaces {
		for _, r := range ns.Records {
			line := fmt.Sprintf("%s: %s: %s", ns.Name, Subject(r.Ref), r.Record.Detail())
			if r.Record.Entity != nil && len(r.Record.Entity.Metadata) > 0 {
				line += fmt.Sprint(" ", r.Record.Entity.Metadata)
			}
			all = append(all, line)
		}
	}
	return all
}

func losses(set *Set) []string {
	all := make([]string, 0, len(set.Losses))
	for _, l := range set.Losses {
		all = append(all, l.String())
	}
	return all
}

// checkBalances compares the balances of the default namespace with the amounts that make.py
// took. The refill of two minutes is less than 400 tokens.
func checkBalances(t *testing.T, set *Set) {
	t.Helper()
	got := map[string]int64{}
	for _, b := range set.Namespaces[0].Balances {
		for _, l := range b.Limits {
			got[b.Entity+" "+b.Resource+" "+l.Name] = l.Bucket.Tokens / 1000
		}
	}
	for name, want := range map[string]int64{"acme gpt-4 rpm": 495, "acme-key gpt-4 tpm": 9400, "stranger gpt-4 tpm": 1000, "stranger other rpm": 1} {
		if name == "stranger gpt-4 tpm" && len(set.Losses) > 0 {
			want = 6000 // one of two shards, and the share of the other
		}
		if have := got[name]; have < want || have > want+400 {
			t.Errorf("%s has %d tokens, want %d and a refill; of %v", name, have, want, got)
		}
	}
}

// One namespace can be read under another name; one that is not there is an error.
func TestNamespace(t *testing.T) {
	server := dynamotest.Start(t)
	client, table := server.Client(t), dynamotest.TableName(t)
	zaetest.MakeTable(t, "0.10.1", server.URL, table, 0)
	items := 0
	_, set, err := Read(t.Context(), client, table, ReadOptions{
		Namespace: "tenant-b", As: "b", Now: time.Now(), Progress: func(n int) { items = n },
	})
	if err != nil || len(set.Namespaces) != 1 || set.Namespaces[0].Name != "b" || items < 20 {
		t.Errorf("%+v, %d items, %v", set, items, err)
	}
	ignored := map[string]int{}
	for _, c := range set.Ignored {
		ignored[c.Kind] = c.N
	}
	if ignored["records of deleted namespaces"] != 1 || ignored["audit events"] == 0 {
		t.Errorf("ignored %v", ignored)
	}
	_, _, err = Read(t.Context(), client, table, ReadOptions{Namespace: "gone", Now: time.Now()})
	if !errors.Is(err, ErrTable) {
		t.Errorf("a deleted namespace: %v", err)
	}
}

// A table of ratelimit, an empty one and none are refused.
func TestOtherTables(t *testing.T) {
	server := dynamotest.Start(t)
	client, table := server.Client(t), dynamotest.TableName(t)
	if _, _, err := Read(t.Context(), client, table, ReadOptions{}); err == nil {
		t.Error("a table that does not exist is read")
	}
	if _, err := client.CreateTable(t.Context(), dynamo.TableInput(table)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(t.Context(), client, table, ReadOptions{}); !errors.Is(err, ErrTable) {
		t.Errorf("an empty table: %v", err)
	}
	if err := dynamo.CheckTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(t.Context(), client, table, ReadOptions{}); !errors.Is(err, ErrTable) {
		t.Errorf("a table of ratelimit: %v", err)
	}
}
