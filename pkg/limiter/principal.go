package limiter

import "context"

// MaxPrincipal is the greatest length of a principal's name in an audit event, in bytes.
const MaxPrincipal = 256

type principalKey struct{}

// WithPrincipal returns a context whose changes are audited under the name of an authenticated
// caller. A name longer than MaxPrincipal is cut.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name[:min(len(name), MaxPrincipal)])
}

// PrincipalFrom returns the name given to WithPrincipal; "" = none.
func PrincipalFrom(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}
