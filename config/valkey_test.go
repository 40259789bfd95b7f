package config_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

func TestCheckValkey(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings config.Valkey
		want     string // a part of the error; "" = none
	}{
		{"this machine", config.Valkey{Table: "ratelimit"}, ""},
		{"a server", config.Valkey{Table: "t", Addresses: []string{"valkey:6379"}}, ""},
		{"sentinels", config.Valkey{Table: "t", Addresses: []string{"a:26379", "b:26379"}, Master: "m", SentinelUsername: "u"}, ""},
		{"a URL", config.Valkey{Table: "t", Addresses: []string{"redis://:hush@valkey"}}, "store.valkey.addresses: must be hosts and ports"},
		{"no table", config.Valkey{}, "store.valkey.table: must be 1 to 64"},
		{"a long table", config.Valkey{Table: strings.Repeat("t", 65)}, "must be 1 to 64"},
		{"a table that is a key", config.Valkey{Table: "{a}:"}, "must be 1 to 64"},
		{"sentinels without addresses", config.Valkey{Table: "t", Master: "m"}, "store.valkey.master: needs addresses"},
		{"a user of no sentinels", config.Valkey{Table: "t", SentinelUsername: "u"}, "store.valkey.sentinel_username: is of sentinels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.settings.Check()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush")):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// A section that is not used, and budgets that nothing watches, are warnings.
func TestWarningsOfValkey(t *testing.T) {
	for text, want := range map[string]string{
		"store: {valkey: {}}\ndomains: [{domain: d, unmatched: deny}]":                                                                       "is used with store.type: valkey",
		"store: {type: valkey, valkey: {usage: false}}\nlimits: {system: {t: {rate: 1/minute, budget: {month: 5}}}}\ndomains: [{domain: d}]": "have budgets, which are not watched with store.valkey.usage: false",
	} {
		c, err := config.Parse("f.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Warnings.Error(); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
