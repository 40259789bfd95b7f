package schema

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestOldIDsAreReadAsWritten: an id of this version comes back from form 1 as it was, and one
// of version 1 is written as it was read. Neither is taken for the other.
func TestOldIDsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := NewWriteID(rapid.Uint32().Draw(t, "replica"), rapid.Uint64Min(1).Draw(t, "number"))
		if got := readOldID(id.oldID()); got != id || id.Old() {
			t.Fatalf("%q is read as %q", id.oldID(), got)
		}
		text := rapid.StringMatching(`[A-Z2-7]{1,9}:[0-9a-z]{1,15}`).Draw(t, "id of version 1")
		old := readOldID(text)
		if got := old.oldID(); got != text || !old.Old() {
			t.Fatalf("%q is written as %q", text, got)
		}
	})
}

// TestOldLeaseTextIsReadAsWritten: only the very text that version 1 writes is a lease.
func TestOldLeaseTextIsReadAsWritten(t *testing.T) {
	for _, test := range []struct {
		text string
		ok   bool
	}{
		{"1k8 x=uv4", true},
		{"1k8 a=1 b=zz", true},
		{"1k8", false},
		{"1k8 ", false},
		{" x=1", false},
		{"1k8 x=0", false},
		{"1k8 x=-1", false},
		{"1k8 x=UV4", false},
		{"1k8 x=+1", false},
		{"1k8 x=01", false},
		{"1k8 b=1 a=1", false},
		{"1k8 a=1 a=1", false},
		{"1k8 a=1 ", false},
		{"1k8 =1", false},
		{"1k8 a=" + strings.Repeat("z", 13), false},
	} {
		if l, ok := parseOldLease("R", test.text); ok != test.ok || ok && l.Text != test.text {
			t.Errorf("%q: %t, %+v; want %t", test.text, ok, l, test.ok)
		}
	}
	if _, ok := parseOldLease("", "1k8 x=1"); ok {
		t.Error("a lease of no replica is read")
	}
}

// TestOldStateIsWhatWritesChange: keys, names and counters are none of it.
func TestOldStateIsWhatWritesChange(t *testing.T) {
	for attr, want := range map[string]bool{
		"rf": true, "cv": true, "cg": true, "lt": true, "ttl": true, "lw0": true, "lw7": true, "lc3": true, "pe16": true, "ls_ABC": true, "b_x_tk": true, "b_tc_rm": true, "wt": true, "mv": true,
		"PK": false, "SK": false, "GSI2PK": false, "entity_id": false, "resource": false, "wcu": false, "b_x_tc": false, "lw": false, "lwx": false, "other": false,
	} {
		if got := isOldState(attr); got != want {
			t.Errorf("%s: %t, want %t", attr, got, want)
		}
	}
}

// FuzzParseOldBucket: an item of form 1 that is not as version 1 writes it is an error, and
// never a panic. One that is read is written as it was.
func FuzzParseOldBucket(f *testing.F) {
	f.Add("b_x_tk", "25000", "1k8 x=uv4", "ABCDEFGHI:1z0k")
	f.Add("b_x_rm", "-1", "1k8 x=1", "")
	f.Add("wcu", "9223372036854775807", "", "x")
	f.Add("b_x_h", "99999999999999999999", "1k8 y=1", "a:b")
	f.Fuzz(func(t *testing.T, attr, number, lease, id string) {
		item := map[string]types.AttributeValue{
			"rf": num("5"), "cv": num("1"), "cg": num("1"), "lvl": num("1"), "ep": num("1"),
			"b_x_tk": num("1"), "b_x_rm": num("0"), "b_x_cp": num("100000"), "b_x_ra": num("1000"), "b_x_rp": num("1000"), "b_x_tc": num("0"), "b_x_h": num("60000"),
			"ls_R": str(lease), "lw3": str(id),
		}
		item[attr] = num(number)
		k := BucketKey("AAAAAAAAAAA", "e", "r", 0, 0)
		hash := anyHash(t, item)
		item["cv"] = NumberAttribute(hash)
		b, err := ParseBucket("t", k, item, nil)
		if err != nil {
			return
		}
		for name, v := range b.Attributes() {
			if was, ok := item[name]; !ok || TypeName(was) != TypeName(v) {
				t.Errorf("%s is written, and was not read", name)
			}
		}
	})
}

// anyHash returns the hash of the limits that an item of form 1 has, 0 where they make no sense.
func anyHash(t *testing.T, item map[string]types.AttributeValue) uint64 {
	t.Helper()
	k := BucketKey("AAAAAAAAAAA", "e", "r", 0, 0)
	r := &oldReader{bucketReader: bucketReader{Reader: NewReader("t", k, item)}}
	r.bucket.Shard = r.Shard(k)
	r.limits()
	if r.Fault != nil || len(r.bucket.Balances) != 1 {
		return 0
	}
	limits, err := limiter.NewLimits(r.bucket.Balances[0].Limit)
	if err != nil {
		return 0
	}
	return limits.Hash()
}
