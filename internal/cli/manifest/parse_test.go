package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Every mistake is reported with its file, its line and the correct form.
func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"key":           {"limts: {}", `m.yaml:1: limts: unknown key "limts"; did you mean "limits"? (known here: manifest, namespace, limits, items)`},
		"key of entity": {"limits:\n  entities:\n    a: {parnet: b}", `m.yaml:3: limits.entities.a.parnet: unknown key "parnet"; did you mean "parent"? (known here: name, parent, plan, cascade, metadata, limits)`},
		"rate":          {"limits: {system: {rpm: 5}}", `m.yaml:1: limits.system.rpm: must be a rate, such as 100/minute, 5/30s or 1000/day, or unlimited: a rate needs a period: write 5/minute`},
		"budget":        {"limits: {system: {rpm: {rate: 5/day, budget: {week: 5}}}}", `m.yaml:1: limits.system.rpm.budget.week: unknown key "week" (known here: hour, day, month, deny)`},
		"no resource":   {"limits: {entities: {k: {limits: {rpm: 5/minute}}}}", `m.yaml:1: limits.entities.k.limits.rpm: must be a mapping of limits, such as {rpm: 5/minute}, not a rate; limits of an entity stand by resource, and _default_ is every other one`},
		"no limit":      {"limits: {system: {}}", `m.yaml:1: limits.system: has no limit: give one, such as rpm: 600/minute, or leave it out`},
		"twice":         {"items:\n- {id: a}\n---\n- {id: a}", `m.yaml:4: [0]: entity a stands at m.yaml:2 already: remove one`},
		"cascade":       {"- {id: a, cascade: true}", `m.yaml:1: [0]: cascade is true, and there is no parent that could consume: give parent too`},
		"ancestor":      {"- {id: a, parent: b}\n- {id: b, parent: a}", "m.yaml:1: entity \"a\" would be its own ancestor\nm.yaml:2: entity \"b\" would be its own ancestor"},
		"no id":         {"- {name: a}", `m.yaml:1: [0]: needs id, the ID of an entity, or level and limits`},
		"level":         {"- {level: entity, limits: {rpm: 1/minute}}", `m.yaml:1: [0]: has level entity, which needs entity, and resource, or _default_ for every other resource`},
		"no level":      {"- {resource: a, limits: {rpm: 1/minute}}", `m.yaml:1: [0]: needs level: system, resource or entity`},
		"policy":        {"- {level: resource, resource: a, limits: {rpm: 1/minute}, on_unavailable: deny}", `m.yaml:1: [0]: has on_unavailable, which only level system has`},
		"base64":        {`- {id: {base64: "*"}}`, `m.yaml:1: [0].id.base64: must be base64: illegal base64 data at input byte 0`},
		"inventory":     {"- {id: $MANIFEST:x:0}", `m.yaml:1: [0]: an ID that begins with $MANIFEST is for inventories of manifests`},
		"two names":     {"manifest: a\n---\nmanifest: b", `m.yaml:3: manifest: is "b"; another document says "a", and one apply is of one`},
		"name":          {"manifest: a:b", `m.yaml:1: manifest: must be 1 to 63 letters, digits, hyphens, dots and underscores, not "a:b"`},
		"syntax":        {"limits: [", `m.yaml:2: not valid YAML in the mapping or list that begins here: did not find expected node content`},
		"text":          {"hello", `m.yaml:1: must be a mapping of keys to values, not the text "hello"`},
	} {
		m, problems := Parse([]Source{{Name: "m.yaml", Data: []byte(test.file)}})
		if got := problems.Error(); got != test.want || m != nil {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// Documents, lists, and the forms of get and of a configuration are one manifest.
func TestForms(t *testing.T) {
	m, problems := Parse([]Source{{Name: "a.yaml", Data: []byte(`manifest: shop
limits:
  system: {rpm: 600/minute}
  entities:
    key/k-1: {parent: org, cascade: true, metadata: {owner: ada}, limits: {_default_: {rpm: unlimited}, gpt: {rpm: {rate: 5/30s, burst: 9, max_debt: 0, budget: {day: 7, month: 8}}}}}
---
# nothing
`)}, {Name: "b.json", Data: []byte(`{"items": [{"id": {"base64": "/w=="}, "etag": "x", "created_at": "y"}, {"level": "resource", "resource": "gpt", "limits": {"rpm": "1/second"}}]}`)}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := make([]string, 0, len(m.Records))
	for _, r := range m.Records {
		got = append(got, r.Place()+" "+Subject(r.Ref))
	}
	want := []string{
		"a.yaml:5 entity key/k-1", `b.json:1 entity "\xff"`, "a.yaml:3 limits of the system", "b.json:1 limits of resource gpt",
		"a.yaml:5 limits of entity key/k-1", "a.yaml:5 limits of entity key/k-1 for resource gpt",
	}
	if diff := cmp.Diff(want, got); diff != "" || m.Name != "shop" {
		t.Errorf("%s: %s", m.Name, diff)
	}
	if l := m.Records[5].Limits.Limits["rpm"].String(); l != "5/30s burst 9 max_debt 0 budget 7/day budget 8/month" {
		t.Errorf("the limit is %s", l)
	}
}

// Every record has a name in an inventory that is of no other.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := limiter.Ref{Kind: rapid.SampledFrom([]limiter.RefKind{limiter.RefEntity, limiter.RefEntityLimits, limiter.RefResourceLimits, limiter.RefSystemLimits}).Draw(t, "kind")}
		text := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })
		if ref.Kind == limiter.RefEntity || ref.Kind == limiter.RefEntityLimits {
			ref.Entity = text.Draw(t, "entity")
		}
		if ref.Kind == limiter.RefEntityLimits || ref.Kind == limiter.RefResourceLimits {
			ref.Resource = text.Draw(t, "resource")
		}
		key := keyOf(ref)
		if got, err := refOf(key); err != nil || got != ref || strings.ToValidUTF8(key, "") != key {
			t.Fatalf("%+v became %q and then %+v: %v", ref, key, got, err)
		}
	})
	for _, key := range []string{"", "entity", "entity x", `entity "a" b`, `limits "a"`, "system ", `resource "a`} {
		if ref, err := refOf(key); err == nil {
			t.Errorf("%q is %+v", key, ref)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("manifest: shop\nlimits: {system: {rpm: 1/minute}}\n---\n- {id: a, parent: b}\n- &x {level: system, limits: {a: 1/day}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, problems := Parse([]Source{{Name: "f", Data: []byte(text)}})
		if (m == nil) != (len(problems) > 0) {
			t.Errorf("%v with %d problems", m, len(problems))
		}
	})
}

// JSON may have any character in a text, as export and list write it.
func TestAnyCharacterInJSON(t *testing.T) {
	for _, r := range []rune{0, 0x1b, 0x7f, 0x80, 0x85, 0x9f, 0xa0, 0x2028, 0xfeff, 0xfffe, 0xffff, 0x1f600} {
		id := api.Name("a" + string(r) + "b")
		text, err := json.Marshal(map[string]any{"items": []api.Entity{{ID: id}}})
		if err != nil {
			t.Fatal(err)
		}
		m, problems := Parse([]Source{{Name: "a.json", Data: text}})
		if len(problems) > 0 || len(m.Records) != 1 || m.Records[0].Entity.ID != id {
			t.Errorf("%U: %v, %+v", r, problems, m)
		}
	}
}
