package iamtest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Guard lets calls pass that a policy allows. It is safe for concurrent use.
type Guard struct {
	table  Table
	policy *Policy

	mu      sync.Mutex
	allowed map[string]bool
	refused []string
}

// NewGuard returns a guard of a table.
func NewGuard(t Table, p *Policy) *Guard {
	return &Guard{table: t, policy: p, allowed: map[string]bool{}}
}

// Plan is the guard as the plan of a proxy: a call that is not allowed gets
// AccessDeniedException.
func (g *Guard) Plan(c dynamofake.Call) dynamofake.Fault {
	body, _ := c.Input.([]byte)
	accesses, err := Accesses(g.table, c.Op, body)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range accesses {
		if err != nil || !g.policy.Allows(a) {
			err = fmt.Errorf("%s on %s, keys %q, attributes %q", a.Action, a.Resource, a.Keys, a.Attributes)
			break
		}
		g.allowed[a.Action] = true
	}
	if err == nil {
		return dynamofake.Fault{}
	}
	g.refused = append(g.refused, err.Error())
	return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{
		Code: "AccessDeniedException", Message: "User is not authorized to perform: " + err.Error(),
	}}
}

// Allowed returns the actions that were allowed, in order.
func (g *Guard) Allowed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.allowed))
}

// Refused returns the refusals since its last call.
func (g *Guard) Refused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused := g.refused
	g.refused = nil
	return refused
}
