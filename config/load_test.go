package config_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

func TestShippedLoads(t *testing.T) {
	c, err := config.Load("", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings {
		t.Log(w)
	}
	t.Log(c.Files, c.Hash)
}
