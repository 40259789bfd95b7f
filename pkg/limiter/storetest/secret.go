package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// secretChecks are about secrets, by which processes recognize a reservation.
func secretChecks() []check {
	return []check{
		{name: "secret/the first stays", run: checkFirstSecret},
		{name: "secret/many at once", run: checkSecretsAtOnce},
		{name: "secret/refusals", run: checkSecretRefusals},
	}
}

// secretOf returns a candidate that begins with text and is no text.
func secretOf(text string) []byte {
	return append([]byte(text), bytes.Repeat([]byte{0, 0xff}, limiter.MinSecretLength/2)...)
}

// secret gets a secret, and requires its value.
func (c client) secret(want []byte, name string, candidate []byte) {
	c.Helper()
	got, err := c.store.Secret(c.Context(), name, candidate)
	if err != nil {
		c.Fatalf("Secret %q: %v", name, err)
	}
	if !bytes.Equal(got, want) {
		c.Errorf("secret %q is %q, want %q", name, got, want)
	}
}

// checkFirstSecret: each name keeps its first candidate, also if the caller reuses its memory.
func checkFirstSecret(t T, s limiter.Store) {
	c := newClient(t, s)
	names := []string{"k", "key", "key-", "-key", "key-1", "1", strings.Repeat("z", limiter.MaxSecretNameLength)}
	for _, name := range names {
		candidate := secretOf(name)
		c.secret(secretOf(name), name, candidate)
		clear(candidate)
	}
	for _, name := range names {
		c.secret(secretOf(name), name, secretOf("another"))
	}
}

// checkSecretsAtOnce: of 16 callers with concurrent candidates all get the same one, for each of 20
// names.
func checkSecretsAtOnce(t T, s limiter.Store) {
	ctx, cancel := within(t)
	defer cancel()
	for i := range 20 {
		name := fmt.Sprint("key-", i)
		var mu sync.Mutex
		got := make(map[string]int)
		var g errgroup.Group
		for caller := range 16 {
			g.Go(func() error {
				secret, err := s.Secret(ctx, name, secretOf(strconv.Itoa(caller)))
				mu.Lock()
				defer mu.Unlock()
				got[string(secret)]++
				return err
			})
		}
		if err := g.Wait(); err != nil || len(got) != 1 {
			t.Fatalf("%s: callers got %d different secrets, error %v; want 1", name, len(got), err)
		}
	}
}

// checkSecretRefusals: names and candidates out of range are refused, also where
// there is a secret, and leave none.
func checkSecretRefusals(t T, s limiter.Store) {
	c := newClient(t, s)
	short, long := make([]byte, limiter.MinSecretLength-1), make([]byte, limiter.MaxSecretLength+1)
	c.secret(secretOf("a"), "present", secretOf("a"))
	for _, refused := range []struct {
		name      string
		candidate []byte
	}{
		{"", secretOf("a")},
		{"Key", secretOf("a")},
		{"k y", secretOf("a")},
		{"k/y", secretOf("a")},
		{"k_y", secretOf("a")},
		{"k\x00", secretOf("a")},
		{"kéy", secretOf("a")},
		{strings.Repeat("z", limiter.MaxSecretNameLength+1), secretOf("a")},
		{"absent", nil},
		{"absent", short},
		{"absent", long},
		{"present", short},
		{"present", long},
	} {
		if got, err := s.Secret(t.Context(), refused.name, refused.candidate); got != nil || !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("secret %q of %d bytes: got %d bytes, %v; want %q", cut(refused.name), len(refused.candidate), len(got), err, limiter.ErrInvalid)
		}
	}
	c.secret(long[:limiter.MaxSecretLength], "absent", long[:limiter.MaxSecretLength])
	c.secret(secretOf("a"), "present", long[:limiter.MinSecretLength])
}
