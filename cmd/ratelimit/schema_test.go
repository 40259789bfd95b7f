package main

import (
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

// The schema is the one that package config makes, whatever configuration lies around.
func TestSchema(t *testing.T) {
	want, err := config.JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := output(t, "schema"); code != 0 || stdout != string(want)+"\n" || stderr != "" {
		t.Errorf("schema ended with %d, %d bytes and %q; want 0 and %d bytes", code, len(stdout), stderr, len(want)+1)
	}
	if code, _, _ := output(t, "schema", "ratelimit.yaml"); code != 2 {
		t.Errorf("schema with an argument ended with %d, want 2", code)
	}
}
