package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitsLevel is a path of limits, and the record at it.
type limitsLevel struct {
	path, of string
	ref      func(*http.Request) limiter.Ref
}

// levelOf returns the level and the names of a ref as JSON.
func levelOf(ref limiter.Ref) (level api.Level, entity, resource *api.Name) {
	e, r := api.Name(ref.Entity), api.Name(ref.Resource)
	switch ref.Kind {
	case limiter.RefSystemLimits:
		return api.LevelSystem, nil, nil
	case limiter.RefResourceLimits:
		return api.LevelResource, nil, &r
	case limiter.RefEntityLimits:
		return api.LevelEntity, &e, &r
	case limiter.RefEntity:
	}
	return api.LevelEntity, &e, nil
}
