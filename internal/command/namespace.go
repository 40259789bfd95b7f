package command

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// ClosedNamespace says why a namespace denies each of its requests, and the next step; "" = it does not.
func ClosedNamespace(ns *api.Namespace) (what, next string) {
	name, state := ns.Name.String(), string(ns.State)
	switch {
	case ns.State == api.StateDeleted:
		next = "ratelimit recover namespace " + name
	case ns.State == api.StatePurging:
		state, next = "being purged", "ratelimit purge namespace "+name+", and then ratelimit create namespace "+name
	case ns.State == api.StatePurged:
		next = "ratelimit create namespace " + name
	case ns.Disabled:
		state, next = "disabled", "ratelimit enable namespace "+name
	default:
		return "", ""
	}
	return fmt.Sprintf("the namespace %s is %s: each of its requests is denied", name, state), next
}
