package manifest

import (
	"encoding/base64"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// item reads a record as get and list print it. Members that the store sets are ignored.
func (p *parser) item(n yamlcfg.Node) {
	if n.Has("level", "limits") {
		p.limitsItem(n)
		return
	}
	var e api.Entity
	n.Fields(append([]yamlcfg.Field{{Name: "id", Read: func(n yamlcfg.Node) { name(n, &e.ID) }}},
		append(entityFields(&e), ignored("created_at"), ignored("disabled"), ignored("etag"))...)...)
	if e.ID == "" {
		if !n.Has("id") {
			n.Failf("needs id, the ID of an entity, or level and limits")
		}
		return
	}
	p.addEntity(n, e)
}

func ignored(member string) yamlcfg.Field {
	return yamlcfg.Field{Name: member, Read: func(yamlcfg.Node) {}}
}

// limitsItem reads the limits of one level as get limits prints them.
func (p *parser) limitsItem(n yamlcfg.Node) {
	var level, policy string
	inherit := true
	var entity, resource api.Name
	var limits *limiter.Limits
	var budgets *limiter.Budgets
	n.Fields(
		yamlcfg.Field{Name: "level", Read: func(n yamlcfg.Node) {
			yamlcfg.Enum(&level, string(api.LevelSystem), string(api.LevelResource), string(api.LevelEntity)).Decode(n)
		}},
		yamlcfg.Field{Name: "entity", Read: func(n yamlcfg.Node) { name(n, &entity) }},
		yamlcfg.Field{Name: "resource", Read: func(n yamlcfg.Node) { name(n, &resource) }},
		yamlcfg.Field{Name: "limits", Read: func(n yamlcfg.Node) { config.ReadLimits(n, &limits, &budgets) }},
		yamlcfg.Field{Name: "on_unavailable", Read: func(n yamlcfg.Node) {
			yamlcfg.Enum(&policy, limiter.Allow.String(), limiter.Deny.String(), limiter.Local.String()).Decode(n)
		}},
		yamlcfg.Field{Name: "inherit", Read: yamlcfg.Bool(&inherit).Decode},
		ignored("disabled"), ignored("etag"),
	)
	ref := limiter.SystemLimitsRef()
	switch {
	case api.Level(level) == api.LevelEntity:
		ref = limiter.EntityLimitsRef(string(entity), string(resource))
	case api.Level(level) == api.LevelResource:
		ref = limiter.ResourceLimitsRef(string(resource))
	case level == "":
		if !n.Has("level") {
			n.Failf("needs level: system, resource or entity")
		}
		return
	}
	switch wrong := levelMistake(ref, string(entity), string(resource)); {
	case wrong != "":
		n.Failf("%s", wrong)
	case policy != "" && ref.Kind != limiter.RefSystemLimits:
		n.Failf("has on_unavailable, which only level system has")
	case !inherit && ref.Kind == limiter.RefSystemLimits:
		n.Failf("has inherit: false, and level system has no level below it")
	case limits.Len() == 0 && policy == "":
		n.Failf("has no limit: give one, such as limits: {rpm: 600/minute}, or leave it out")
	default:
		r := levelRecord(ref, limits, budgets, policy)
		if !inherit {
			r.Limits.Inherit = &inherit
		}
		p.add(n, r)
	}
}

// levelMistake says which names are missing at a level, or do not belong there.
func levelMistake(ref limiter.Ref, entity, resource string) string {
	switch {
	case ref.Kind == limiter.RefSystemLimits && entity+resource != "":
		return "has level system, which has neither entity nor resource"
	case ref.Kind == limiter.RefResourceLimits && (resource == "" || entity != ""):
		return "has level resource, which needs resource, and has no entity"
	case ref.Kind == limiter.RefEntityLimits && (resource == "" || entity == ""):
		return "has level entity, which needs entity, and resource, or " + limiter.DefaultResource + " for every other resource"
	}
	return ""
}

// name reads a name: text, or {base64: "..."} of bytes that are no text.
func name(n yamlcfg.Node, out *api.Name) {
	if !n.Has("base64") {
		yamlcfg.Name((*string)(out)).Decode(n)
		return
	}
	n.Fields(yamlcfg.Field{Name: "base64", Read: func(n yamlcfg.Node) {
		var text string
		yamlcfg.Name(&text).Decode(n)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			n.Failf("must be base64: %v", err)
			return
		}
		*out = api.Name(raw)
	}})
}
