package server

import (
	"testing"
	"testing/fstest"

	"github.com/ratelimit/ratelimit/config"
)

// The call to try at the start is one of the rules in force. Where none is known there is no call.
func TestSample(t *testing.T) {
	for file, want := range map[string]string{
		"domain: mongo\ndescriptors: [{key: database, value: users, descriptors: [{key: path, rate_limit: {unit: minute, requests_per_unit: 5}}]}]":             `{"domain":"mongo","descriptors":[{"entries":[{"key":"database","value":"users"},{"key":"path","value":"demo"}]}]}`,
		"domain: shop\nrules: [{match: {a: b}, deny: true}, {match: {user: '*'}, entity: 'u/{user}', resource: r, limits: {rpm: 1/minute}, consume: {rpm: 1}}]": `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"demo"}]}]}`,
		"domain: shop\nrules: [{match: {a: b}, deny: true}]":                                                                        "",
		"[{namespace: llm, max_value: 2, seconds: 60, conditions: ['descriptors[0].a == \"1\"'], variables: ['descriptors[0].u']}]": "",
	} {
		cfg, err := config.Parse("c.yaml", []byte("include: [{path: more.yaml}]"), fstest.MapFS{"more.yaml": {Data: []byte(file)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := sample(cfg.Rules); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
