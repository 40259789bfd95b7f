package config

import (
	"cmp"
	"path/filepath"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// LoadBudgets is [Load] for a program that only watches budgets. It reads no keys of reservations:
// their files may be missing, and Config.Reservation has none. The configuration may be without a
// domain. One without a domain, a budget and a webhook is an error, as the file may be incomplete.
func LoadBudgets(path string) (*Config, error) {
	return load(HostFS{}, filepath.ToSlash(path), nil, Options{budgets: true}).result()
}

// ParseBudgets is [LoadBudgets] for a configuration in memory. It reads no file: the key of the
// webhook must be text. It leaves out files that the configuration includes, with a warning.
func ParseBudgets(name string, data []byte) (*Config, error) {
	if data == nil {
		data = []byte{}
	}
	return load(nil, cmp.Or(name, "ratelimit.yaml"), data, Options{budgets: true}).result()
}

// checkOnlyBudgets makes the checks that [Load] does not.
func (f *file) checkOnlyBudgets(main string, own bool, r *yamlcfg.Report) {
	if !own {
		f.unread(r)
	}
	if b := &f.cfg.Budgets; r.Sound() && len(f.domains) == 0 && len(f.includes) == 0 && b.Set.Len() == 0 && b.Webhook.URL == "" {
		r.Fail(yamlcfg.Place{File: main}, "has no domain, no budget and no webhook: there is nothing to watch")
	}
}

// unread warns of files that a configuration in memory includes.
func (f *file) unread(r *yamlcfg.Report) {
	for _, i := range f.includes {
		r.Warn(i.at, "is not read: this configuration has no files beside it; budgets in that file are not watched")
	}
}
