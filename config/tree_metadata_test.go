package config_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ratelimit/ratelimit/config"
)

// Metadata of a descriptor is part of answers in JSON, so that it has the values of JSON alone.
func TestTreeMetadataIsJSON(t *testing.T) {
	for value, ok := range map[string]bool{
		"{a: 1, b: {c: [x, null, true, 1.5]}}": true,
		"{a: .nan}":                            false,
		"{a: [{b: -.inf}]}":                    false,
		"{a: {1: x}}":                          false,
		"[a]":                                  false,
	} {
		tree := "domain: d\ndescriptors:\n- {key: k, metadata: " + value + ", rate_limit: {unit: minute, requests_per_unit: 1}}\n"
		_, err := config.Parse("c.yaml", []byte("include: [{path: tree.yaml}]\n"), fstest.MapFS{"tree.yaml": {Data: []byte(tree)}})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "descriptors[0].metadata: ") {
			t.Errorf("%s: %v", value, err)
		}
	}
}
