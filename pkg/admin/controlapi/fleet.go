package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// fleetReader answers requests about all replicas.
type fleetReader struct{ fleet Fleet }

func (a fleetReader) endpoints() []endpoint {
	return []endpoint{{
		method: http.MethodGet, path: "/v1/fleet", role: admin.RoleRead, result: api.Fleet{},
		summary: "State, decisions of the last half hour and events of all replicas that share the store", run: a.state,
	}}
}

func (a fleetReader) state(c *call) (any, error) {
	if a.fleet == nil {
		return nil, errNoActivity()
	}
	return a.fleet.State(c.r.Context()), nil
}
