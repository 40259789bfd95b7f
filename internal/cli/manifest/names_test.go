package manifest

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A manifest brings the names that it has at the system or at resources, and no others beside them. It brings its
// entities, also as parents.
func TestBrings(t *testing.T) {
	limits := func(names ...string) Record {
		l := &api.Limits{Limits: map[string]api.Limit{}}
		for _, name := range names {
			l.Limits[name] = api.Limit{}
		}
		return Record{Limits: l}
	}
	p := &Plan{Changes: []Change{
		{Ref: limiter.SystemLimitsRef(), after: limits("rpm", "tpm")},
		{Ref: limiter.EntityLimitsRef("typo", "_default_"), after: limits("rpm", "tmp")},
		{Ref: limiter.EntityLimitsRef("sound", "_default_"), after: limits("rpm", "tpm")},
	}}
	child := func(parent api.Name) Change {
		return Change{Ref: limiter.EntityRef("child"), after: Record{Entity: &api.Entity{ID: "child", Parent: parent}}}
	}
	p.Changes = append(p.Changes, child("sound"), child("none"))
	brings := p.brings()
	for i, want := range []string{"entity", "entity", "entity limit", "entity parent", "entity"} {
		if got := strings.Join(brings.kinds(&p.Changes[i]), " "); got != want {
			t.Errorf("change %d: %s, want %s", i, got, want)
		}
	}
	p.named = true
	if got := strings.Join(p.brings().kinds(&p.Changes[0]), " "); got != "entity namespace" {
		t.Errorf("with the namespace in the manifest: %s", got)
	}
}
