package admin

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Role says which requests a principal may make. Each role includes the ones before it.
type Role int

// The roles, the least first. The zero value allows nothing.
const (
	RoleNone       Role = iota
	RoleRead            // reads everything but secrets
	RoleOperate         // changes balances, disables and enables
	RoleAdminister      // changes limits and entities, and copies the whole store, with secrets
)

// String returns the role in the form of a configuration.
func (r Role) String() string {
	switch r {
	case RoleRead:
		return "read"
	case RoleOperate:
		return "operate"
	case RoleAdminister:
		return "administer"
	case RoleNone:
	}
	return "none"
}

// Principal is the authenticated caller of an administrative request.
type Principal struct {
	Name string // of the token or the certificate, or SocketPrincipal and the user
	Role Role
}

// SocketPrincipal begins the name of a caller over the Unix socket, such as socket:ada for a user, or
// socket:1000 for one without a name. Alone it is a caller whose user the system does not tell.
const SocketPrincipal = "socket"

type principalKey struct{}

// WithPrincipal returns a context of a request by a principal. The audit has its changes under the
// principal's name.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return limiter.WithPrincipal(context.WithValue(ctx, principalKey{}, p), p.Name)
}

// PrincipalFrom returns the principal of a request that a [Control] serves, from the request's
// context; false for any other request.
func PrincipalFrom(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}
