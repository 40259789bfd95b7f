package dynamo

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const testNS = "AbCdEfGhIj0"

// attributes is short for what the SDK calls an item.
type attributes = map[string]types.AttributeValue

func avS(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func avN(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func avBool(b bool) types.AttributeValue {
	return &types.AttributeValueMemberBOOL{Value: b}
}

func mustLimits(t rapid.TB, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	l, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatalf("NewLimits: %v", err)
	}
	return l
}

func TestEntitiesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := limiter.Entity{
			ID: anyName().Draw(t, "id"), Name: anyName().Draw(t, "name"), Parent: anyName().Draw(t, "parent"), Cascade: rapid.Bool().Draw(t, "cascade"),
			CreatedAt: time.UnixMilli(rapid.Int64Range(-1<<40, 1<<45).Draw(t, "created")).UTC(), Version: rapid.Uint64Min(1).Draw(t, "version"),
		}
		if n := rapid.IntRange(0, 3).Draw(t, "metadata"); n > 0 {
			want.Metadata = rapid.MapOfN(anyName(), anyName(), n, n).Draw(t, "of")
		}
		got, err := parseRecord("t", testNS, limiter.EntityRef(want.ID), entityItem(testNS, &want))
		if err != nil {
			t.Fatalf("parseRecord: %v", err)
		}
		if diff := cmp.Diff(&want, got.record.Entity); diff != "" || got.generation != want.Version {
			t.Fatalf("generation %d; (-written +read):\n%s", got.generation, diff)
		}
	})
}

func TestLimitsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := limiter.Ref{Kind: limiter.RefKind(rapid.IntRange(1, 3).Draw(t, "kind")), Entity: anyName().Draw(t, "entity"), Resource: anyName().Draw(t, "resource")}
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a_cp", "a_cp_cp", "rpm", "x.y-z", "l_", "un"}), 1, 5, rapid.ID[string]).Draw(t, "names")
		var want limiter.Record
		all := make([]limiter.Limit, len(names))
		for i, name := range names {
			all[i] = limiter.Unlimited(name)
			if rapid.Bool().Draw(t, "limited") {
				tokens := rapid.Int64Range(1, limiter.MaxTokens)
				period := time.Duration(rapid.Int64Range(1000, 366*24*3600*1000).Draw(t, "period")) * time.Millisecond
				all[i] = limiter.Custom(name, tokens.Draw(t, "capacity"), tokens.Draw(t, "amount"), period)
				all[i].MaxDebt = rapid.Int64Range(limiter.NoDebt, limiter.MaxTokens).Draw(t, "debt")
			}
		}
		want.Limits = mustLimits(t, all...)
		if ref.Kind == limiter.RefSystemLimits {
			want.OnUnavailable = limiter.Policy(rapid.IntRange(0, 3).Draw(t, "policy"))
		}
		got, err := parseRecord("t", testNS, ref, limitsItem(testNS, ref, want, 7))
		if err != nil {
			t.Fatalf("parseRecord: %v", err)
		}
		for i := range want.Limits.Len() {
			if w, g := want.Limits.At(i), got.record.Limits.At(i); w != g {
				t.Fatalf("limit %d: written %+v, read %+v", i, w, g)
			}
		}
		if got.record.Limits.Len() != want.Limits.Len() || got.record.OnUnavailable != want.OnUnavailable || got.generation != 7 {
			t.Fatalf("written %+v at 7, read %+v at %d", want, got.record, got.generation)
		}
	})
}

func TestSecondsInItems(t *testing.T) {
	for ms, want := range map[int64]string{1000: "1", 60_000: "60", 1500: "1.5", 1001: "1.001", 1010: "1.01", 31_622_400_000: "31622400"} {
		if got := formatSeconds(time.Duration(ms) * time.Millisecond); got != want {
			t.Errorf("%d ms is written %q, want %q", ms, got, want)
		}
		if got, ok := parseSeconds(want); !ok || got.Milliseconds() != ms {
			t.Errorf("%q is read %v, %t; want %d ms", want, got, ok, ms)
		}
	}
	for _, s := range []string{"", ".5", "-1", "1.0001", "1e3", "1.5.5", "999999999999999999999", "31622401", "0x1", " 1"} {
		if got, ok := parseSeconds(s); ok {
			t.Errorf("%q is read %v; want it refused", s, got)
		}
	}
}

// TestWrittenLimits: the attributes, as the schema has them.
func TestWrittenLimits(t *testing.T) {
	ref := limiter.EntityLimitsRef("org/acme", "k\xff")
	limits := mustLimits(t, limiter.PerMinute("tpm", 100).WithBurst(150), limiter.Custom("rps", 5, 5, 1500*time.Millisecond).WithMaxDebt(limiter.NoDebt), limiter.Unlimited("rpd"))
	got := limitsItem(testNS, ref, limiter.Record{Limits: limits}, 42)
	want := attributes{
		"PK": avS(testNS + "/ENTITY#org%2Facme"), "SK": avS("#CONFIG#k%FF"), "entity_id": avS("org/acme"), "resource": &types.AttributeValueMemberB{Value: []byte("k\xff")},
		"GSI3PK": avS(testNS + "/ENTITY_CONFIG#k%FF"), "GSI3SK": avS("org%2Facme"),
		"GSI4PK": avS(everythingPK(testNS, indexPartition(testNS+"/ENTITY#org%2Facme"))), "GSI4SK": avS(testNS + "/ENTITY#org%2Facme"),
		"config_version": avN("42"), "l_tpm_cp": avN("150"), "l_tpm_ra": avN("100"), "l_tpm_rp": avN("60"),
		"l_rps_cp": avN("5"), "l_rps_ra": avN("5"), "l_rps_rp": avN("1.5"), "l_rps_md": avN("-1"), "l_rpd_un": avBool(true),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCorruptRecords: an item that is not as it should be is an error that names
// the item and the attribute, and never an absent record.
func TestCorruptRecords(t *testing.T) {
	entity := entityItem(testNS, &limiter.Entity{ID: "e", Name: "n", Parent: "p", Version: 3, Metadata: map[string]string{"k": "v"}})
	limitsRef, systemRef := limiter.EntityLimitsRef("e", "r"), limiter.SystemLimitsRef()
	limits := limitsItem(testNS, limitsRef, limiter.Record{Limits: mustLimits(t, limiter.PerMinute("rpm", 100).WithMaxDebt(5), limiter.Unlimited("tpm"))}, 3)
	system := limitsItem(testNS, systemRef, limiter.Record{OnUnavailable: limiter.Deny}, 3)
	deleted := tombstone(testNS, keyOfRef(testNS, limitsRef), limitsRef.Kind, 3, time.Unix(1, 0))
	for _, test := range []struct {
		ref       limiter.Ref
		item      attributes
		attribute string
		value     types.AttributeValue // nil = missing
	}{
		{limiter.EntityRef("e"), entity, "version", nil},
		{limiter.EntityRef("e"), entity, "version", avN("0")},
		{limiter.EntityRef("e"), entity, "version", avN("-1")},
		{limiter.EntityRef("e"), entity, "version", avN("1.5")},
		{limiter.EntityRef("e"), entity, "version", avS("3")},
		{limiter.EntityRef("e"), entity, "entity_id", avS("other")},
		{limiter.EntityRef("e"), entity, "entity_id", avN("3")},
		{limiter.EntityRef("e"), entity, "cascade", nil},
		{limiter.EntityRef("e"), entity, "cascade", avS("true")},
		{limiter.EntityRef("e"), entity, "created_at", nil},
		{limiter.EntityRef("e"), entity, "created_at", avS("yesterday")},
		{limiter.EntityRef("e"), entity, "parent_id", &types.AttributeValueMemberNULL{Value: true}},
		{limiter.EntityRef("e"), entity, "name", avBool(true)},
		{limiter.EntityRef("e"), entity, "metadata", avS("k=v")},
		{limitsRef, limits, "config_version", nil},
		{limitsRef, limits, "config_version", avBool(true)},
		{limitsRef, limits, "l_rpm_cp", nil},
		{limitsRef, limits, "l_rpm_cp", avS("100")},
		{limitsRef, limits, "l_rpm_cp", avN("0")},
		{limitsRef, limits, "l_rpm_cp", avN("-100")},
		{limitsRef, limits, "l_rpm_cp", avN("1000000000001")},
		{limitsRef, limits, "l_rpm_cp", avN("99999999999999999999999999")},
		{limitsRef, limits, "l_rpm_ra", nil},
		{limitsRef, limits, "l_rpm_ra", avN("-1")},
		{limitsRef, limits, "l_rpm_rp", nil},
		{limitsRef, limits, "l_rpm_rp", avN("0")},
		{limitsRef, limits, "l_rpm_rp", avN("0.999")},
		{limitsRef, limits, "l_rpm_rp", avN("31622401")},
		{limitsRef, limits, "l_rpm_md", avN("-2")},
		{limitsRef, limits, "l_rpm_md", avS("5")},
		{limitsRef, limits, "l_rpm_xx", avN("5")},
		{limitsRef, limits, "l_rpm", avN("5")},
		{limitsRef, limits, "l_tpm_un", avBool(false)},
		{limitsRef, limits, "l_tpm_un", avN("1")},
		{limitsRef, limits, "l_tpm_cp", avN("1")},
		{limitsRef, limits, "l_more_cp", avN("1")},
		{limitsRef, limits, "l_bad name_un", avBool(true)},
		{limitsRef, deleted, "deleted", avBool(false)},
		{limitsRef, deleted, "deleted", avN("1")},
		{limitsRef, deleted, "deleted", nil},
		{limitsRef, deleted, "config_version", nil},
		{systemRef, system, "on_unavailable", nil},
		{systemRef, system, "on_unavailable", avS("allways")},
		{systemRef, system, "on_unavailable", avN("1")},
	} {
		item := maps.Clone(test.item)
		if item[test.attribute] = test.value; test.value == nil {
			delete(item, test.attribute)
		}
		got, err := parseRecord("limits", testNS, test.ref, item)
		corrupt, ok := errors.AsType[*CorruptError](err)
		if !ok || !errors.Is(err, limiter.ErrInvalid) || !got.record.Empty() {
			t.Errorf("%s = %#v: read as %+v, error %v; want a CorruptError", test.attribute, test.value, got.record, err)
			continue
		}
		if !strings.Contains(err.Error(), keyOfRef(testNS, test.ref).String()) || !strings.Contains(err.Error(), "table limits") || corrupt.Attribute == "" {
			t.Errorf("%s = %#v: error %q does not name table, key and attribute", test.attribute, test.value, err)
		}
	}
	if _, err := parseRecord("limits", testNS, limiter.EntityRef("e"), nil); err != nil {
		t.Errorf("an entity that was never created: %v", err)
	}
}

func TestCorruptMetadataIsNamed(t *testing.T) {
	for what, metadata := range map[string]attributes{
		"metadata.a": {"a": avN("1")}, "metadata.%6": {"%6": avS("v")},
	} {
		item := entityItem(testNS, &limiter.Entity{ID: "e", Version: math.MaxUint64})
		item[attrMetadata] = &types.AttributeValueMemberM{Value: metadata}
		_, err := parseRecord("limits", testNS, limiter.EntityRef("e"), item)
		if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Attribute != what {
			t.Errorf("error %v does not name %s", err, what)
		}
	}
}

// TestLongNamesAreCut: an item holds no name that could make it too large.
func TestLongNamesAreCut(t *testing.T) {
	long := strings.Repeat("n", maxNameAttribute+1)
	item := limitsItem(testNS, limiter.EntityLimitsRef(long, long), limiter.Record{Limits: mustLimits(t, limiter.PerDay("l", 1))}, 1)
	if item[attrEntity] != nil || item[attrResource] != nil {
		t.Errorf("an item holds names of %d bytes", len(long))
	}
	item = entityItem(testNS, &limiter.Entity{ID: long[1:], Version: 1})
	if item[attrEntity] == nil {
		t.Errorf("an item does not hold a name of %d bytes", len(long)-1)
	}
}
