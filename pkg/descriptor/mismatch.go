package descriptor

import (
	"fmt"
	"strings"
)

// mismatch returns the reason why the rule does not match; "" when it does.
func (r *Rule) mismatch(v *view) string {
	for i := range r.patterns {
		p := &r.patterns[i]
		from, to := v.find(p.key)
		if from == to && !p.optional {
			return fmt.Sprintf("key %s missing", plain(p.name))
		}
		if from == to {
			continue
		}
		if _, ok := matchAny(p, v); !ok {
			return fmt.Sprintf("%s %s does not match %s", plain(p.name), clip(v.value(from)), p.describe())
		}
	}
	if r.open {
		return ""
	}
	for i := range v.entries {
		if !r.names(v.entries[i].Key) {
			return fmt.Sprintf("has key %s, which the rule does not name", plain(v.entries[i].Key))
		}
	}
	return ""
}

// names reports whether the rule names the key.
func (r *Rule) names(key string) bool {
	for i := range r.patterns {
		if r.patterns[i].name == key {
			return true
		}
	}
	return false
}

// describe returns the pattern in the form of a file.
func (p *pattern) describe() string {
	switch p.kind {
	case regexValue:
		return "regex " + clip(p.text)
	case cidrValue:
		return "cidr [" + p.text + "]"
	case listValue:
		return "one of " + clip(p.text)
	case anyValue, exactValue, globValue:
		return clip(p.text)
	default:
		return clip(p.text)
	}
}

// maxShown is how many bytes of a value are shown to people.
const maxShown = 200

// clip returns a value quoted, and cut if it is long.
func clip(value string) string {
	if len(value) <= maxShown {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q (the first %d of %d bytes)", value[:maxShown], maxShown, len(value))
}

// plain returns the name of a key, quoted if it has unsafe characters.
func plain(key string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"
	if key == "" || len(key) > maxShown || strings.Trim(key, safe) != "" {
		return clip(key)
	}
	return key
}
