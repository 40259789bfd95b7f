package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// anyRef draws a ref with the names that its kind has.
func anyRef(t *rapid.T) limiter.Ref {
	entity, resource := anyName().Draw(t, "entity"), anyName().Draw(t, "resource")
	return []limiter.Ref{
		limiter.EntityRef(entity), limiter.EntityLimitsRef(entity, resource), limiter.ResourceLimitsRef(resource), limiter.SystemLimitsRef(),
	}[rapid.IntRange(0, 3).Draw(t, "kind")]
}

func anyTime(t *rapid.T) time.Time {
	return time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "time")).UTC()
}

// sameKey requires of an item that it has a key.
func sameKey(t *rapid.T, item record, want Key) {
	if got, err := ItemKey("t", item); err != nil || got != want {
		t.Fatalf("the item has the key %v, %v; want %v", got, err, want)
	}
}

func TestAuditEventsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := limiter.AuditEvent{
			Time: anyTime(t), Action: rapid.StringMatching(`[a-z_]{1,20}`).Draw(t, "action"), Subject: anyRef(t),
			Generation: rapid.Uint64Min(1).Draw(t, "generation"), Detail: rapid.String().Draw(t, "detail"),
			Principal: rapid.String().Draw(t, "principal"), Reason: rapid.String().Draw(t, "reason"),
		}
		want.ID = limiter.AuditID(want.Time, want.Generation)
		item := AuditItem(someNS, &want, time.Hour)
		sameKey(t, item, AuditKey(someNS, AuditSubject(want.Subject), want.ID))
		got, err := ParseAudit("t", item)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("error %v; (-written +read):\n%s", err, diff)
		}
	})
}

// A change names its records, or says that any may have changed: when it gets no
// names, and when they are too many or too long for one item.
func TestChangesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refs := rapid.SliceOfN(rapid.Custom(anyRef), 0, MaxChangeRefs+1).Draw(t, "refs")
		generation := rapid.Uint64Range(1, MaxCounter).Draw(t, "generation")
		item := ChangeItem(someNS, generation, anyTime(t), refs)
		sameKey(t, item, ChangeKey(someNS, generation))
		if n, err := ParseCounter("t", ChangeKey(someNS, generation), item); err != nil || n != generation {
			t.Fatalf("generation %d, %v; want %d", n, err, generation)
		}
		got, err := ParseChange("t", someNS, generation, item)
		if err != nil {
			t.Fatalf("ParseChange: %v", err)
		}
		if len(refs) > MaxChangeRefs {
			refs = nil
		}
		if !slices.Equal(got, refs) || (got == nil) != (refs == nil) {
			t.Fatalf("read %v, written %v", got, refs)
		}
	})
	long := make([]limiter.Ref, MaxChangeRefs)
	for i := range long {
		long[i] = limiter.EntityRef(strings.Repeat("n", MaxNameAttribute))
	}
	for name, refs := range map[string][]limiter.Ref{"none are told": nil, "too long": long} {
		if got, err := ParseChange("t", someNS, 1, ChangeItem(someNS, 1, time.Unix(0, 0), refs)); got != nil || err != nil {
			t.Errorf("%s: got %d refs, %v; want nil for any record", name, len(got), err)
		}
	}
}

func TestMarksAndSecretsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(what string, least, most int) []byte {
			return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, what)
		}
		m := limiter.Mark{ID: string(bytesOf("id", 1, limiter.MaxMarkLength)), Owner: string(bytesOf("owner", 1, limiter.MaxMarkLength)), Expires: anyTime(t)}
		k := MarkKey(someNS, m.ID)
		item := MarkItem(k, m)
		sameKey(t, item, k)
		if owner, err := ParseMark("t", k, item); err != nil || owner != m.Owner {
			t.Fatalf("owner %q, %v; want %q", owner, err, m.Owner)
		}
		if ttl := NewReader("t", k, item).Int(AttrTTL, 0, MaxTTL); ttl < m.Expires.Add(markMargin).Unix() {
			t.Fatalf("ttl %d of a mark that expires at %v", ttl, m.Expires)
		}
		sealed := bytesOf("sealed", limiter.MinSecretLength+sealedOverhead, limiter.MaxSecretLength+sealedOverhead)
		got, err := ParseSecret("t", SecretKey("s"), SecretItem(SecretKey("s"), sealed, anyTime(t)))
		if err != nil || !slices.Equal(got, sealed) {
			t.Fatalf("a secret of %d encrypted bytes is read as %d, %v", len(sealed), len(got), err)
		}
	})
}

func TestNamespacesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, id := anyName().Draw(t, "name"), rapid.StringMatching(`[A-Za-z0-9_-]{11}`).Draw(t, "id")
		ns := Namespace{Name: name, ID: id, Key: NamespaceKey(name), CreatedAt: anyTime(t)}
		item := NamespaceItem(NamespaceKey(name), ns, ns.CreatedAt)
		if NameAttribute(name) == nil {
			ns.Name = ""
		}
		if got, err := ParseNamespace("t", NamespaceKey(name), item); err != nil || got != ns {
			t.Fatalf("%+v, %v; want %+v", got, err, ns)
		}
		if got := NewReader("t", NamespaceKey(name), item).Text(AttrNamespaceName); got != name {
			t.Fatalf("name %q, want %q", got, name)
		}
	})
}

// A record that is not as this program writes it is an error that names the attribute,
// and does not contain a secret.
func TestCorruptRecordsOfOtherKinds(t *testing.T) {
	event := limiter.AuditEvent{ID: limiter.AuditID(time.Unix(0, 0), 1), Generation: 1, Subject: limiter.EntityRef("e"), Action: "a"}
	audit := func(item record) error { _, err := ParseAudit("t", item); return err }
	change := func(item record) error { _, err := ParseChange("t", someNS, 1, item); return err }
	counter := func(item record) error { _, err := ParseCounter("t", GenerationKey(someNS), item); return err }
	counters := func(item record) error { _, err := ParseCounters("t", someNS, item); return err }
	mark := func(item record) error { _, err := ParseMark("t", MarkKey(someNS, "r"), item); return err }
	secret := func(item record) error { _, err := ParseSecret("t", SecretKey("s"), item); return err }
	namespace := func(item record) error { _, err := ParseNamespace("t", NamespaceKey("n"), item); return err }
	list := func(elements ...types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: elements}
	}
	for _, test := range []struct {
		name      string
		parse     func(record) error
		item      record
		attribute string
		value     types.AttributeValue // nil = missing
	}{
		{"audit without a kind", audit, AuditItem(someNS, &event, 0), attrRefKind, nil},
		{"audit of no kind", audit, AuditItem(someNS, &event, 0), attrRefKind, num("4")},
		{"audit without a generation", audit, AuditItem(someNS, &event, 0), AttrCounter, num("0")},
		{"audit without a key", audit, AuditItem(someNS, &event, 0), AttrSK, nil},
		{"change of a text", change, ChangeItem(someNS, 1, time.Unix(0, 0), nil), AttrRefs, str("e")},
		{"change of texts", change, ChangeItem(someNS, 1, time.Unix(0, 0), nil), AttrRefs, list(str("e"))},
		{"change without kinds", change, ChangeItem(someNS, 1, time.Unix(0, 0), nil), AttrRefs, list(&types.AttributeValueMemberM{Value: record{}})},
		{"counter of a text", counter, GenerationKey(someNS).Attributes(), AttrCounter, str("1")},
		{"counter below its range", counter, GenerationKey(someNS).Attributes(), AttrCounter, num("-1")},
		{"counter above its range", counter, GenerationKey(someNS).Attributes(), AttrCounter, num("4294967296")},
		{"counters of a text", counters, ConfigurationKey(someNS).Attributes(), AttrConfiguration, str("1")},
		{"counters with one below its range", counters, ConfigurationKey(someNS).Attributes(), AttrCounter, num("0")},
		{"mark without an owner", mark, MarkItem(MarkKey(someNS, "r"), limiter.Mark{Owner: "o"}), attrOwner, nil},
		{"mark of an empty owner", mark, MarkItem(MarkKey(someNS, "r"), limiter.Mark{Owner: "o"}), attrOwner, str("")},
		{"secret that is missing", secret, SecretKey("s").Attributes(), attrSealed, nil},
		{"secret that is text", secret, SecretKey("s").Attributes(), attrSealed, str("hush")},
		{"secret that is short", secret, SecretKey("s").Attributes(), attrSealed, &types.AttributeValueMemberB{Value: make([]byte, limiter.MinSecretLength)}},
		{"namespace of another id", namespace, NamespaceItem(NamespaceKey("n"), Namespace{Name: "n", ID: someNS}, time.Unix(0, 0)), AttrNamespaceID, str("../etc")},
	} {
		if test.value == nil {
			delete(test.item, test.attribute)
		} else {
			test.item[test.attribute] = test.value
		}
		err := test.parse(test.item)
		if corrupt, ok := errors.AsType[*CorruptError](err); !ok || corrupt.Attribute != test.attribute || !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: got %v, want a CorruptError of %s", test.name, err, test.attribute)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error contains the secret: %v", test.name, err)
		}
	}
}
