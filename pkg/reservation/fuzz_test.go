package reservation_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// Any text of a client is refused for one of three reasons, unless it is exactly a sealed id.
func FuzzOpen(f *testing.F) {
	k := keyring(f, 1, 2)
	id, err := k.Seal(strings.NewReader("sixteen bytes: 1"), typical(f)) // the same in every process that fuzzes
	if err != nil {
		f.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(id)
	f.Add(seal(f, keyring(f, 2), reservation.Reservation{Expires: now}))
	f.Add(seal(f, keyring(f, 3), typical(f)))
	f.Add(id[:len(id)-1])
	f.Add(base64.RawURLEncoding.EncodeToString(raw[:37]))
	f.Add("")
	f.Fuzz(func(t *testing.T, got string) {
		_, err := k.Open(got, now)
		if reason := reservation.Reason(err); reason == "" && got != id {
			t.Errorf("%q: %v", got, err)
		}
	})
}
