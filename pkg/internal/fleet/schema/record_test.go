package schema

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

const someNS = "AbCdEfGhIj0"

// record is short for the SDK's type of an item.
type record = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func boolean(b bool) types.AttributeValue {
	return &types.AttributeValueMemberBOOL{Value: b}
}

func limitsFrom(t rapid.TB, limits ...limiter.Limit) *limiter.Limits {
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
		record := limiter.Record{Entity: &want, Disabled: rapid.Bool().Draw(t, "disabled")}
		got, err := ParseRecord("t", someNS, limiter.EntityRef(want.ID), EntityItem(someNS, record))
		if err != nil {
			t.Fatalf("parseRecord: %v", err)
		}
		if diff := cmp.Diff(&want, got.Record.Entity); diff != "" || got.Generation != want.Version || got.Record.Disabled != record.Disabled {
			t.Fatalf("generation %d; (-written +read):\n%s", got.Generation, diff)
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
		want.Limits, want.Budgets = limitsFrom(t, all...), budgetsOf(t, all)
		if ref.Kind == limiter.RefSystemLimits {
			want.OnUnavailable = limiter.Policy(rapid.IntRange(0, 3).Draw(t, "policy"))
		}
		got, err := ParseRecord("t", someNS, ref, LimitsItem(someNS, ref, want, 7))
		if err != nil {
			t.Fatalf("parseRecord: %v", err)
		}
		for i := range want.Limits.Len() {
			if w, g := want.Limits.At(i), got.Record.Limits.At(i); w != g {
				t.Fatalf("limit %d: written %+v, read %+v", i, w, g)
			}
		}
		if !got.Record.Budgets.Equal(want.Budgets) || got.Record.Limits.Len() != want.Limits.Len() || got.Record.OnUnavailable != want.OnUnavailable || got.Generation != 7 {
			t.Fatalf("written %+v at 7, read %+v at %d", want, got.Record, got.Generation)
		}
	})
}

// budgetsOf draws budgets of limits.
func budgetsOf(t *rapid.T, limits []limiter.Limit) *limiter.Budgets {
	var all []limiter.Budget
	for _, l := range limits {
		for _, w := range limiter.UsageWindows() {
			if !l.Unlimited && rapid.Bool().Draw(t, "budget") {
				all = append(all, limiter.Budget{Limit: l.Name, Window: w, Tokens: rapid.Int64Range(1, limiter.MaxTokens).Draw(t, "budget's tokens")})
			}
		}
	}
	budgets, err := limiter.NewBudgets(all...)
	if err != nil {
		t.Fatal(err)
	}
	return budgets
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
	limits := limitsFrom(t, limiter.PerMinute("tpm", 100).WithBurst(150), limiter.Custom("rps", 5, 5, 1500*time.Millisecond).WithMaxDebt(limiter.NoDebt), limiter.Unlimited("rpd"))
	budgets, err := limiter.NewBudgets(limiter.Budget{Limit: "tpm", Window: limiter.UsageDay, Tokens: 7}, limiter.Budget{Limit: "tpm", Window: limiter.UsageMonth, Tokens: 9})
	if err != nil {
		t.Fatal(err)
	}
	got := LimitsItem(someNS, ref, limiter.Record{Limits: limits, Budgets: budgets}, 42)
	want := record{
		"PK": str(someNS + "/ENTITY#org%2Facme"), "SK": str("#CONFIG#k%FF"), "entity_id": str("org/acme"), "resource": &types.AttributeValueMemberB{Value: []byte("k\xff")},
		"GSI3PK": str(someNS + "/ENTITY_CONFIG#k%FF"), "GSI3SK": str("org%2Facme"),
		"GSI4PK": str(EverythingPK(someNS, IndexPartition(someNS+"/ENTITY#org%2Facme"))), "GSI4SK": str(someNS + "/LIMITS#org%2Facme"),
		"config_version": num("42"), "l_tpm_cp": num("150"), "l_tpm_ra": num("100"), "l_tpm_rp": num("60"),
		"l_rps_cp": num("5"), "l_rps_ra": num("5"), "l_rps_rp": num("1.5"), "l_rps_md": num("-1"), "l_rpd_un": boolean(true),
		"b_tpm_day": num("7"), "b_tpm_month": num("9"),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCorruptRecords: an item that is not as it should be is an error that names
// the item and the attribute, and never an absent record.
func TestCorruptRecords(t *testing.T) {
	entity := EntityItem(someNS, limiter.Record{Entity: &limiter.Entity{ID: "e", Name: "n", Parent: "p", Version: 3, Metadata: map[string]string{"k": "v"}}})
	limitsRef, systemRef := limiter.EntityLimitsRef("e", "r"), limiter.SystemLimitsRef()
	limits := LimitsItem(someNS, limitsRef, limiter.Record{Limits: limitsFrom(t, limiter.PerMinute("rpm", 100).WithMaxDebt(5), limiter.Unlimited("tpm"))}, 3)
	system := LimitsItem(someNS, systemRef, limiter.Record{OnUnavailable: limiter.Deny}, 3)
	deleted := Tombstone(someNS, KeyOfRef(someNS, limitsRef), limitsRef.Kind, 3, time.Unix(1, 0))
	for _, test := range []struct {
		ref       limiter.Ref
		item      record
		attribute string
		value     types.AttributeValue // nil = missing
	}{
		{limiter.EntityRef("e"), entity, "version", nil},
		{limiter.EntityRef("e"), entity, "version", num("0")},
		{limiter.EntityRef("e"), entity, "version", num("-1")},
		{limiter.EntityRef("e"), entity, "version", num("1.5")},
		{limiter.EntityRef("e"), entity, "version", str("3")},
		{limiter.EntityRef("e"), entity, "entity_id", str("other")},
		{limiter.EntityRef("e"), entity, "entity_id", num("3")},
		{limiter.EntityRef("e"), entity, "cascade", nil},
		{limiter.EntityRef("e"), entity, "cascade", str("true")},
		{limiter.EntityRef("e"), entity, "created_at", nil},
		{limiter.EntityRef("e"), entity, "created_at", str("yesterday")},
		{limiter.EntityRef("e"), entity, "parent_id", &types.AttributeValueMemberNULL{Value: true}},
		{limiter.EntityRef("e"), entity, "name", boolean(true)},
		{limiter.EntityRef("e"), entity, "metadata", str("k=v")},
		{limitsRef, limits, "config_version", nil},
		{limitsRef, limits, "config_version", boolean(true)},
		{limitsRef, limits, "l_rpm_cp", nil},
		{limitsRef, limits, "l_rpm_cp", str("100")},
		{limitsRef, limits, "l_rpm_cp", num("0")},
		{limitsRef, limits, "l_rpm_cp", num("-100")},
		{limitsRef, limits, "l_rpm_cp", num("1000000000001")},
		{limitsRef, limits, "l_rpm_cp", num("99999999999999999999999999")},
		{limitsRef, limits, "l_rpm_ra", nil},
		{limitsRef, limits, "l_rpm_ra", num("-1")},
		{limitsRef, limits, "l_rpm_rp", nil},
		{limitsRef, limits, "l_rpm_rp", num("0")},
		{limitsRef, limits, "l_rpm_rp", num("0.999")},
		{limitsRef, limits, "l_rpm_rp", num("31622401")},
		{limitsRef, limits, "l_rpm_md", num("-2")},
		{limitsRef, limits, "l_rpm_md", str("5")},
		{limitsRef, limits, "l_rpm_xx", num("5")},
		{limitsRef, limits, "l_rpm", num("5")},
		{limitsRef, limits, "l_tpm_un", boolean(false)},
		{limitsRef, limits, "l_tpm_un", num("1")},
		{limitsRef, limits, "l_tpm_cp", num("1")},
		{limitsRef, limits, "l_more_cp", num("1")},
		{limitsRef, limits, "l_bad name_un", boolean(true)},
		{limitsRef, limits, "b_rpm_week", num("1")},
		{limitsRef, limits, "b_rpm", num("1")},
		{limitsRef, limits, "b_rpm_day", num("0")},
		{limitsRef, limits, "b_rpm_day", num("1000000000001")},
		{limitsRef, limits, "b_rpm_day", str("1")},
		{limitsRef, limits, "b_tpm_day", num("1")},
		{limitsRef, limits, "b_more_day", num("1")},
		{limitsRef, deleted, "deleted", boolean(false)},
		{limitsRef, deleted, "deleted", num("1")},
		{limitsRef, deleted, "deleted", nil},
		{limitsRef, deleted, "config_version", nil},
		{systemRef, system, "on_unavailable", nil},
		{systemRef, system, "on_unavailable", str("allways")},
		{systemRef, system, "on_unavailable", num("1")},
	} {
		item := maps.Clone(test.item)
		if item[test.attribute] = test.value; test.value == nil {
			delete(item, test.attribute)
		}
		got, err := ParseRecord("limits", someNS, test.ref, item)
		corrupt, ok := errors.AsType[*CorruptError](err)
		if !ok || !errors.Is(err, limiter.ErrInvalid) || !got.Record.Empty() {
			t.Errorf("%s = %#v: read as %+v, error %v; want a CorruptError", test.attribute, test.value, got.Record, err)
			continue
		}
		if !strings.Contains(err.Error(), KeyOfRef(someNS, test.ref).String()) || !strings.Contains(err.Error(), "table limits") || corrupt.Attribute == "" {
			t.Errorf("%s = %#v: error %q does not name table, key and attribute", test.attribute, test.value, err)
		}
	}
	if _, err := ParseRecord("limits", someNS, limiter.EntityRef("e"), nil); err != nil {
		t.Errorf("an entity that was never created: %v", err)
	}
}

func TestCorruptMetadataIsNamed(t *testing.T) {
	for what, metadata := range map[string]record{
		"metadata.a": {"a": num("1")}, "metadata.%6": {"%6": str("v")},
	} {
		item := EntityItem(someNS, limiter.Record{Entity: &limiter.Entity{ID: "e", Version: math.MaxUint64}})
		item[attrMetadata] = &types.AttributeValueMemberM{Value: metadata}
		_, err := ParseRecord("limits", someNS, limiter.EntityRef("e"), item)
		if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Attribute != what {
			t.Errorf("error %v does not name %s", err, what)
		}
	}
}

// TestLongNamesAreCut: an item holds no name that could make it too large.
func TestLongNamesAreCut(t *testing.T) {
	long := strings.Repeat("n", MaxNameAttribute+1)
	item := LimitsItem(someNS, limiter.EntityLimitsRef(long, long), limiter.Record{Limits: limitsFrom(t, limiter.PerDay("l", 1))}, 1)
	if item[AttrEntity] != nil || item[AttrResource] != nil {
		t.Errorf("an item holds names of %d bytes", len(long))
	}
	item = EntityItem(someNS, limiter.Record{Entity: &limiter.Entity{ID: long[1:], Version: 1}})
	if item[AttrEntity] == nil {
		t.Errorf("an item does not hold a name of %d bytes", len(long)-1)
	}
}

// Limits that an editor marked as alone stand alone only where they can.
func TestAloneIsOfLimits(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ref    limiter.Ref
		record limiter.Record
		sound  bool
	}{
		{limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limits}, true},
		{limiter.SystemLimitsRef(), limiter.Record{Limits: limits}, false},
		{limiter.ResourceLimitsRef("r"), limiter.Record{Disabled: true}, false},
	} {
		tt.record.Alone = true
		got, err := ParseRecord("t", "ns", tt.ref, LimitsItem("ns", tt.ref, tt.record, 3))
		if (err == nil) != tt.sound || tt.sound && !got.Record.Alone {
			t.Errorf("%+v: %+v, %v", tt.ref, got.Record, err)
		}
	}
}
