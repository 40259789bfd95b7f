package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/api"
)

const (
	tokenPrefix = "rlt_"
	tokenBytes  = 32 // random
	hashPrefix  = "sha256:"
)

// minToken is the length of the shortest accepted token, in bytes. A shorter one could be guessed,
// or found from its hash.
const minToken = 32

// TokenHash is the SHA-256 of a token. A configuration has the hash instead of the token.
type TokenHash [sha256.Size]byte

// NewToken returns a token of 256 random bits, and its hash.
func NewToken() (string, TokenHash) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	return token, sha256.Sum256([]byte(token))
}

// String returns the hash in the form of a configuration, sha256: and 64 hexadecimal digits.
func (h TokenHash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseTokenHash is the inverse of [TokenHash.String]. Its error does not repeat the text,
// which may be a token in the wrong place.
func ParseTokenHash(text string) (TokenHash, error) {
	var h TokenHash
	digits, ok := strings.CutPrefix(text, hashPrefix)
	n := 0
	if ok && len(digits) == hex.EncodedLen(len(h)) {
		n, _ = hex.Decode(h[:], []byte(digits)) // after a mistake n is too small
	}
	if n != len(h) {
		return TokenHash{}, errors.New("a hash is sha256: and 64 hexadecimal digits, as `ratelimit token` prints it")
	}
	return h, nil
}

// Token is a hash, and the name and role of callers with the token of that hash.
type Token struct {
	Name string
	Role Role
	Hash TokenHash
}

// Credentials are those of callers that are not on the Unix socket.
type Credentials struct {
	Tokens []Token
	Proxy  *Proxy // nil = none
}

// Access finds the principal of a request. The mode of the socket's file decides about a request
// over a Unix socket, which may administer. The header of a [Proxy] decides about a request with the
// proxy's verified certificate. Any other request needs a token. If there are neither tokens nor a
// proxy, it needs a verified certificate, with which it may administer. Addresses and all other
// headers but Authorization are ignored. The zero value has no credentials. It is safe for
// concurrent use.
type Access struct {
	credentials atomic.Pointer[Credentials]
	users       userNames
}

// Set replaces the credentials, for every request from now on, also of connections that are open.
// The caller must not change them afterwards.
func (a *Access) Set(c Credentials) { a.credentials.Store(&c) }

// principal returns the principal of a request, or the reason why it has none.
func (a *Access) principal(r *http.Request) (Principal, error) {
	if overSocket(r) {
		return Principal{Name: a.users.principal(r.Context()), Role: RoleAdminister}, nil
	}
	var c Credentials
	if set := a.credentials.Load(); set != nil {
		c = *set
	}
	var peer *x509.Certificate // nil = it has shown none
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		peer = r.TLS.VerifiedChains[0][0]
	}
	switch {
	case c.Proxy != nil && peer != nil && c.Proxy.shows(peer):
		return c.Proxy.principal(r.Header)
	case len(c.Tokens) > 0:
		return byToken(c.Tokens, r.Header)
	case c.Proxy != nil: // a wrong name of its certificate lets in none of its users
		return Principal{}, errors.New("a token is needed: the request comes without a certificate of the name in server.admin.proxy.certificate")
	case peer != nil:
		return Principal{Name: subject(peer), Role: RoleAdminister}, nil
	}
	return Principal{}, errors.New("a client certificate is needed")
}

// overSocket reports whether a request came over a Unix socket.
func overSocket(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// byToken compares the token with every hash, in a time that does not depend on the result.
func byToken(tokens []Token, header http.Header) (Principal, error) {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Principal{}, errors.New("a token is needed: Authorization: Bearer TOKEN")
	}
	if len(token) < minToken {
		return Principal{}, errors.New("the token is too short; `ratelimit token` makes valid ones")
	}
	hash := sha256.Sum256([]byte(token))
	found := Principal{}
	for i := range tokens {
		if subtle.ConstantTimeCompare(hash[:], tokens[i].Hash[:]) == 1 {
			found = Principal{Name: tokens[i].Name, Role: tokens[i].Role}
		}
	}
	if found.Role == RoleNone {
		return Principal{}, errors.New("the token is not known")
	}
	return found, nil
}

// subject names the holder of a certificate. A name that does not print, or is that of callers of
// the Unix socket or of users of a proxy, is quoted. So the audit shows different holders differently.
func subject(c *x509.Certificate) string {
	name := "certificate"
	switch {
	case c.Subject.CommonName != "":
		name = c.Subject.CommonName
	case len(c.DNSNames) > 0:
		name = c.DNSNames[0]
	case len(c.URIs) > 0:
		name = c.URIs[0].String()
	}
	if isSocketName(name) || strings.HasPrefix(name, ProxyPrincipal) {
		return strconv.Quote(name)
	}
	return api.Name(name).String()
}
