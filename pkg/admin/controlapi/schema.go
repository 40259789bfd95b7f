package controlapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// object is an object of the document.
type object = map[string]any

// schemas makes JSON schemas of Go types. Those of structs are components.
type schemas struct{ components object }

// of returns the schema of an answer. It requires the members that are never absent.
func (s *schemas) of(v any) object { return s.typ(reflect.TypeOf(v), false) }

// body returns the schema of a body. It requires no member.
func (s *schemas) body(v any) object { return s.typ(reflect.TypeOf(v), true) }

// special are the schemas of types that write their JSON themselves, and of enumerations.
func special(t reflect.Type) object {
	text := object{"type": "string"}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[api.Name]():
		return object{"description": "Any bytes; an object where they are no UTF-8", "oneOf": []any{text, closed(object{"base64": text}, "base64")}}
	case reflect.TypeFor[api.Limit]():
		count := object{"type": "integer", "minimum": 0}
		members := object{"rate": text, "burst": count, "max_debt": count, "budget": budgetSchema()}
		return object{"description": "A rate, such as 100/minute or unlimited, or an object with more", "oneOf": []any{text, closed(members, "rate")}}
	case reflect.TypeFor[api.Tokens]():
		return object{"description": "Tokens, with at most three decimals", "type": "number"}
	case reflect.TypeFor[api.Level]():
		return object{"enum": []api.Level{api.LevelSystem, api.LevelResource, api.LevelEntity, api.LevelNamespace}}
	case reflect.TypeFor[api.EventKind]():
		return object{"enum": []api.EventKind{api.EventStart, api.EventReload, api.EventRefused, api.EventOutage, api.EventRecovered, api.EventBudget, api.EventStop}}
	case reflect.TypeFor[api.NamespaceState]():
		return object{"enum": []api.NamespaceState{api.StateActive, api.StateDeleted, api.StatePurging, api.StatePurged}}
	case reflect.TypeFor[api.Window]():
		return object{"enum": []api.Window{api.Hour, api.Day, api.Month}}
	case reflect.TypeFor[api.Excess]():
		return object{"enum": []api.Excess{api.UpToCapacity, api.Beyond}}
	case reflect.TypeFor[api.Result]():
		return object{"enum": []api.Result{api.Created, api.Changed, api.Unchanged, api.Deleted, api.Repeated}}
	}
	return nil
}

// budgetSchema is the schema of the budget of a limit.
func budgetSchema() object {
	tokens := object{"type": "integer", "minimum": 1, "maximum": int64(limiter.MaxTokens)}
	windows := object{}
	for _, w := range limiter.UsageWindows() {
		windows[w.String()] = tokens
	}
	o := closed(windows)
	o["description"], o["minProperties"] = "Tokens of usage in each window of UTC, at whose thresholds there are events", 1
	return o
}

// closed is the schema of an object that has no other members.
func closed(members object, required ...string) object {
	o := object{"type": "object", "properties": members, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

func (s *schemas) typ(t reflect.Type, body bool) object {
	if o := special(t); o != nil {
		return o
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return s.typ(t.Elem(), body)
	case kind == reflect.Slice:
		return object{"type": "array", "items": s.typ(t.Elem(), body)}
	case kind == reflect.Map:
		return object{"type": "object", "additionalProperties": s.typ(t.Elem(), body)}
	case kind == reflect.Bool:
		return object{"type": "boolean"}
	case kind == reflect.Float64:
		return object{"type": "number"}
	case t.ConvertibleTo(reflect.TypeFor[int64]()):
		return object{"type": "integer"}
	case kind == reflect.Struct:
		return s.component(t, body)
	default:
		return object{"type": "string"}
	}
}

// component returns a reference to the schema of a struct.
func (s *schemas) component(t reflect.Type, body bool) object {
	name := componentName(t)
	if body {
		name += "Body"
	}
	if s.components[name] == nil {
		s.components[name] = object{} // for a type that contains itself
		members := object{}
		required := s.members(t, body, members)
		s.components[name] = closed(members, required...)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// members adds the members of a struct, including those of embedded structs. It returns those that
// are never absent.
func (s *schemas) members(t reflect.Type, body bool, members object) (required []string) {
	for field := range t.Fields() {
		member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			required = append(required, s.members(field.Type, body, members)...)
			continue
		}
		members[member] = s.typ(field.Type, body)
		if !body && !strings.HasPrefix(options, "omit") {
			required = append(required, member)
		}
	}
	return required
}

// componentName is the name of a type; that of List[Entity] is EntityList.
func componentName(t reflect.Type) string {
	outer, inner, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return t.Name()
	}
	inner = strings.TrimSuffix(inner, "]")
	return inner[strings.LastIndex(inner, ".")+1:] + outer
}
