package config

import (
	"encoding/json"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// key is a key of an object: its name, its line in docs/configuration.md, and its value.
func key(name, doc string, value yamlcfg.Schema) yamlcfg.Key {
	return yamlcfg.Key{Name: name, Doc: doc, Schema: value}
}

// JSONSchema returns the JSON Schema (draft 2020-12) of the configuration, for editors. It is made
// of the tables that read the file.
func JSONSchema() ([]byte, error) {
	f := newFile(Options{})
	root := f.schema().Shape()
	root.Dialect, root.Title = "https://json-schema.org/draft/2020-12/schema", "ratelimit.yaml"
	root.Walk("", func(key string, s *yamlcfg.Shape) { s.Title = key })
	return json.MarshalIndent(root, "", " ")
}

// newFile returns a file with the defaults.
func newFile(o Options) *file {
	f := &file{cfg: defaults(o)}
	f.reservation.ttl = &f.cfg.Reservation.TTL
	return f
}
