package server

import (
	"encoding/json"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// An event names its entity as it is, also by bytes that are no text: no two entities have the same name.
func TestEventsNameAnyEntity(t *testing.T) {
	for _, entity := range []string{"key/a", "key/\xff", "key/\xfe", "key/\ufffd", "\x00"} {
		e := event(entity)
		e.Resource, e.Namespace = entity, entity
		text, err := encode(&e)
		var got struct {
			Entity    api.Name `json:"entity"`
			Resource  api.Name `json:"resource"`
			Namespace api.Name `json:"namespace"`
		}
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || string(got.Entity) != entity || string(got.Resource) != entity || string(got.Namespace) != entity {
			t.Errorf("%q: %v, %s", entity, err, text)
		}
	}
}
