package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// GoneError says that the files are valid but lack domains in force, or all rules of such domains.
// These domains stay in force until a later read finds them missing too.
type GoneError struct {
	Domains []string      // sorted
	After   time.Duration // how long they must be missing
}

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("the files have no rules of the domain %s, which is in force: its rules stay for at least %s, and end then if the files still have none",
		yamlcfg.Shorten(strings.Join(e.Domains, ", "), yamlcfg.MaxText/2), yamlcfg.ShortDuration(e.After))
}

// EmptiedError says that the files have domains without a list of rules, while rules of them are in
// force. A file that was cut off after its first lines looks like this. The rules stay in force for
// as long as the files are so.
type EmptiedError struct {
	Domains []string // sorted
}

// Error implements error.
func (e *EmptiedError) Error() string {
	return fmt.Sprintf("the files have the domain %s without a list of rules, and it has rules in force: is a file cut off? rules: [] says that there are none",
		yamlcfg.Shorten(strings.Join(e.Domains, ", "), yamlcfg.MaxText/2))
}

// missing follows the domains in force that the files lack. A domain that has lost all its rules
// counts as missing.
type missing struct {
	inForce map[string]bool      // domains, and whether they have rules
	since   map[string]time.Time // of the first read without the domain
}

// use notes the domains in force.
func (m *missing) use(c *Config) {
	m.since = nil
	m.inForce = ruled(c)
}

// forget begins anew. A read with mistakes does not show which domains are missing.
func (m *missing) forget() { m.since = nil }

// emptied returns the domains with rules in force that have no list of rules in a configuration.
func (m *missing) emptied(c *Config) (names []string) {
	for name := range c.ruleless {
		if m.inForce[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// update returns the domains in force that a configuration lacks, and the time from which they may
// be taken out of force. The time is zero when they may be now.
func (m *missing) update(now time.Time, after time.Duration, c *Config) (gone []string, due time.Time) {
	since := make(map[string]time.Time)
	have := ruled(c)
	for name, rules := range m.inForce {
		if has, ok := have[name]; ok && (has || !rules) {
			continue
		}
		gone = append(gone, name)
		first, ok := m.since[name]
		if !ok {
			first = now
		}
		since[name] = first
		if end := first.Add(after); end.After(now) && end.After(due) {
			due = end
		}
	}
	m.since = since
	slices.Sort(gone)
	return gone, due
}

// ruled returns the domains of a configuration, and whether they have rules.
func ruled(c *Config) map[string]bool {
	domains := make(map[string]bool)
	for _, d := range c.Rules.Domains() {
		domains[d.Name()] = len(d.Rules()) > 0
	}
	return domains
}
