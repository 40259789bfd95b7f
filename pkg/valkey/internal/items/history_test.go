package items

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The items of a place with another history may have lost something. Where that is the place of the names of
// namespaces, all items may have: buckets are at other keys under another id.
func TestChangedPlaces(t *testing.T) {
	at := func(changed int) *histories {
		h := &histories{}
		for place := range schema.IndexPartitions {
			of := &loaded{history: history{number: 1, id: "a"}}
			if place == changed {
				of.number = 2
			}
			h.places = append(h.places, of)
		}
		return h
	}
	bucket := schema.BucketKey("AbCdEfGhIjk", limiter.BucketKey{Entity: "user/ada", Resource: "api"}, 0)
	names, _ := home(schema.VersionKey(), schema.IndexPartitions)
	own, _ := home(bucket, schema.IndexPartitions)
	if names == own {
		t.Fatal("the bucket is in the place of the names")
	}
	for place := range schema.IndexPartitions {
		if got, want := at(place).changed(at(-1))(bucket), place == own || place == names; got != want {
			t.Errorf("place %d of %d has another history: the bucket in %d may have lost something: %t, want %t", place, schema.IndexPartitions, own, got, want)
		}
	}
}
