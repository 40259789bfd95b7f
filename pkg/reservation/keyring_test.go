package reservation_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// equalLimits compares sets by their hashes and by their limits.
var equalLimits = cmp.Comparer(func(a, b *limiter.Limits) bool {
	if a.Len() != b.Len() || a.Hash() != b.Hash() {
		return false
	}
	for i := range a.Len() {
		if a.At(i) != b.At(i) {
			return false
		}
	}
	return true
})

func TestOpenReturnsWhatWasSealed(t *testing.T) {
	want := typical(t)
	nonce := []byte("sixteen bytes: 1")
	id, err := keyring(t, 1).Seal(bytes.NewReader(nonce), want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keyring(t, 1).Open(id, now)
	if err != nil {
		t.Fatal(err)
	}
	want.ID = string(nonce)
	if diff := cmp.Diff(want, got, equalLimits); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

// The format is stable: older and newer programs open the same ids. A change of the format must
// raise the version.
func TestFormatStays(t *testing.T) {
	id, err := keyring(t, 1).Seal(strings.NewReader("sixteen bytes: 1"), typical(t))
	if err != nil {
		t.Fatal(err)
	}
	const header, tag = "AQ4ffo5zaXh0ZWVuIGJ5dGVzOiAx", "nS5nJlT6GsXXRPRauhYM4A"
	if !strings.HasPrefix(id, header) || !strings.HasSuffix(id, tag) {
		t.Errorf("an id is %s, want %s...%s", id, header, tag)
	}
}

func TestIDIsOpaqueAndBounded(t *testing.T) {
	r := typical(t)
	id := seal(t, keyring(t, 1), r)
	t.Logf("three levels of four limits: %d characters", len(id))
	if len(id) >= 1024 {
		t.Errorf("an id has %d characters, want fewer than 1024", len(id))
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(id) {
		t.Errorf("an id has other characters: %s", id)
	}
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", r.Holdings[0].Bucket.Entity, r.Holdings[0].Bucket.Resource, "tpm"} {
		if bytes.Contains(raw, []byte(name)) {
			t.Errorf("an id shows the name %s", name)
		}
	}
	if again := seal(t, keyring(t, 1), r); again == id {
		t.Error("the same reservation has the same id twice")
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	k := keyring(t, 1)
	id := seal(t, k, typical(t))
	refused := func(what, altered string) {
		t.Helper()
		if _, err := k.Open(altered, now); reservation.Reason(err) != "forged" && reservation.Reason(err) != "malformed" {
			t.Fatalf("%s: got %v, want forged or malformed", what, err)
		}
	}
	for i := range len(id) * 8 {
		b := []byte(id)
		b[i/8] ^= 1 << (i % 8)
		refused(fmt.Sprintf("bit %d of the text", i), string(b))
	}
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		b := slices.Clone(raw)
		b[i/8] ^= 1 << (i % 8)
		refused(fmt.Sprintf("bit %d of the bytes", i), base64.RawURLEncoding.EncodeToString(b))
	}
}

func TestIDHasOneSpelling(t *testing.T) {
	k := keyring(t, 1)
	id := seal(t, k, typical(t))
	for n := range len(id) {
		if _, err := k.Open(id[:n], now); reservation.Reason(err) != "forged" && reservation.Reason(err) != "malformed" {
			t.Fatalf("the first %d characters: got %v, want forged or malformed", n, err)
		}
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for _, last := range alphabet { // some of whose 6 bits are unused
		altered := id[:len(id)-1] + string(last)
		if _, err := k.Open(altered, now); err == nil && altered != id {
			t.Errorf("with %c at its end instead of %s it is opened", last, id[len(id)-1:])
		}
	}
	for _, altered := range []string{
		id + "\n", "\r" + id, id[:9] + "\r\n" + id[9:], id + "=", id + "==", " " + id, id + "A", id + id,
		strings.Repeat("A", reservation.MaxLength), strings.Repeat("A", reservation.MaxLength+1), "\xff", "é" + id,
	} {
		if _, err := k.Open(altered, now); reservation.Reason(err) != "forged" && reservation.Reason(err) != "malformed" {
			t.Errorf("%.40q...: got %v, want forged or malformed", altered, err)
		}
	}
}

func TestOpenSaysWhyItRefuses(t *testing.T) {
	k := keyring(t, 1)
	r := typical(t)
	id := seal(t, k, r)
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	raw[0] = 2
	for _, test := range []struct {
		name, id string
		at       time.Time
		want     error
		reason   string
		says     string
	}{
		{"nothing", "", now, reservation.ErrMalformed, "malformed", "too few"},
		{"other text", "give me my tokens back", now, reservation.ErrMalformed, "malformed", "A-Z"},
		{"too long", strings.Repeat("A", 5000), now, reservation.ErrMalformed, "malformed", "5000 characters; at most 4096"},
		{"another version", base64.RawURLEncoding.EncodeToString(raw), now, reservation.ErrMalformed, "malformed", "version 2"},
		{"of another keyring", seal(t, keyring(t, 2), r), now, reservation.ErrForged, "forged", "not in use"},
		{"altered", id[:len(id)-8] + "AAAAAAAA", now, reservation.ErrForged, "forged", "its content was altered"},
		{"just over", id, r.Expires, reservation.ErrExpired, "expired", "2023-11-14T22:23:20.123Z"},
		{"over for a year", id, r.Expires.AddDate(1, 0, 0), reservation.ErrExpired, "expired", "2023-11-14T22:23:20.123Z"},
	} {
		got, err := k.Open(test.id, test.at)
		if !errors.Is(err, test.want) || reservation.Reason(err) != test.reason || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: got %v, reason %q; want %v, reason %q, saying %q", test.name, err, reservation.Reason(err), test.want, test.reason, test.says)
		}
		if diff := cmp.Diff(reservation.Reservation{}, got); diff != "" {
			t.Errorf("%s: returned something: %s", test.name, diff)
		}
	}
	if _, err := k.Open(id, r.Expires.Add(-time.Millisecond)); err != nil {
		t.Errorf("a millisecond before it expires: %v", err)
	}
	_, err = k.Open(id, r.Expires)
	if expired := new(reservation.ExpiredError); !errors.As(err, &expired) || !expired.Expired.Equal(r.Expires) {
		t.Errorf("got %v, want an error that carries %v", err, r.Expires)
	}
	if got := reservation.Reason(io.EOF); got != "" {
		t.Errorf("the reason of another error is %q", got)
	}
}

// While keys change, every process opens the ids of every other one.
func TestRotation(t *testing.T) {
	r := typical(t)
	steps := [][]byte{{1}, {1, 2}, {2, 1}, {2}}
	for i, sealing := range steps {
		id := seal(t, keyring(t, sealing...), r)
		for j, opening := range steps {
			_, err := keyring(t, opening...).Open(id, now)
			if near := i-j <= 1 && j-i <= 1; near && err != nil {
				t.Errorf("sealed with keys %v, opened with %v: %v", sealing, opening, err)
			}
			if !slices.Contains(opening, sealing[0]) && !errors.Is(err, reservation.ErrForged) {
				t.Errorf("sealed with keys %v, opened with %v: %v, want forged", sealing, opening, err)
			}
		}
	}
}

func TestNewKeyringRefusesBadKeys(t *testing.T) {
	many := make([][]byte, reservation.MaxKeys+1)
	for i := range many {
		many[i] = secret(byte(i))
	}
	if _, err := reservation.NewKeyring(many[1:]...); err != nil {
		t.Errorf("%d keys: %v", len(many)-1, err)
	}
	if _, err := reservation.NewKeyring(bytes.Repeat([]byte{1}, reservation.MaxKey)); err != nil {
		t.Errorf("a key of %d bytes: %v", reservation.MaxKey, err)
	}
	short := []byte("hunter2hunter2hunter2hunter2hun")
	for _, test := range []struct {
		keys [][]byte
		says string
	}{
		{nil, "0 reservation keys; there must be 1 to 8"},
		{many, "9 reservation keys; there must be 1 to 8"},
		{[][]byte{secret(1), short}, "reservation key 2 has 31 bytes; it must be 32 to 256 random bytes"},
		{[][]byte{bytes.Repeat(short, 9)}, "reservation key 1 has 279 bytes"},
		{[][]byte{secret(1), secret(2), secret(1)}, "reservation key 3 has the id of an earlier one"},
	} {
		_, err := reservation.NewKeyring(test.keys...)
		if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(fmt.Sprint(err), test.says) || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("got %v, want it to say %q and nothing of a key", err, test.says)
		}
	}
}

func TestKeyringKeepsItsKeys(t *testing.T) {
	key := []byte("hunter2hunter2hunter2hunter2hunter2")
	k, err := reservation.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		if got := fmt.Sprintf(verb, k); !regexp.MustCompile(`^keyring\([0-9a-f]{8}\)$`).MatchString(got) {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	id := seal(t, k, typical(t))
	clear(key) // later changes of the caller's key do not matter
	if _, err := k.Open(id, now); err != nil {
		t.Errorf("after the caller's key was overwritten: %v", err)
	}
}

func TestSealRefuses(t *testing.T) {
	k := keyring(t, 1)
	with := func(change func(*reservation.Reservation)) reservation.Reservation {
		r := typical(t)
		change(&r)
		return r
	}
	for _, test := range []struct {
		name string
		r    reservation.Reservation
		want error
		says string
	}{
		{"an entity of a megabyte", with(func(r *reservation.Reservation) { r.Holdings[1].Bucket.Entity = strings.Repeat("x", 1<<20) }), reservation.ErrTooLong, "4096 characters"},
		{"a namespace of a megabyte", reservation.Reservation{Namespace: strings.Repeat("x", 1<<20)}, reservation.ErrTooLong, "4096 characters"},
		{"145 holdings", reservation.Reservation{Holdings: make([]limiter.Holding, 145)}, reservation.ErrTooLong, "145 holdings; at most 144"},
		{"no limits", with(func(r *reservation.Reservation) { r.Holdings[0].Limits = nil }), limiter.ErrInvalid, "has no limits"},
		{"another's limit", with(func(r *reservation.Reservation) { r.Holdings[2].Taken[0].Limit = "rps" }), limiter.ErrInvalid, `holding 2 of a reservation: invalid: it took of limit "rps"`},
		{"a negative amount", with(func(r *reservation.Reservation) { r.Holdings[0].Taken[1].Amount = -1 }), limiter.ErrInvalid, "its amount is -1"},
		{"a huge amount", with(func(r *reservation.Reservation) { r.Holdings[0].Taken[1].Amount = 1_000_000_000_000_000_001 }), limiter.ErrInvalid, "its amount is 1000000000000000001; it must be 0 to 1000000000000000000"},
		{"a negative shard", with(func(r *reservation.Reservation) { r.Holdings[0].Shard = -1 }), limiter.ErrInvalid, "shard is -1"},
		{"level 8", with(func(r *reservation.Reservation) { r.Holdings[0].Level = limiter.MaxLevels }), limiter.ErrInvalid, "level is 8; it must be 0 to 7"},
	} {
		id, err := k.Seal(rand.Reader, test.r)
		if id != "" || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: got %q, %v; want %v, saying %q", test.name, id, err, test.want, test.says)
		}
	}
	if _, err := k.Seal(strings.NewReader("too short"), typical(t)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source without randomness: %v", err)
	}
}

// The longest name that fits, and the next one.
func TestLongestID(t *testing.T) {
	k := keyring(t, 1)
	r := reservation.Reservation{Expires: now.Add(time.Minute)}
	for n := 2900; ; n++ {
		r.Namespace = strings.Repeat("n", n)
		id, err := k.Seal(rand.Reader, r)
		if err == nil {
			if got, err := k.Open(id, now); err != nil || got.Namespace != r.Namespace {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		r.Namespace = r.Namespace[1:]
		if last := seal(t, k, r); !errors.Is(err, reservation.ErrTooLong) || len(last) != reservation.MaxLength {
			t.Errorf("%d bytes: %v; one fewer has %d characters, want %d", n, err, len(last), reservation.MaxLength)
		}
		return
	}
}
