package dynamofake

import (
	"slices"
	"strings"
)

// placeholders are the names and values that the expressions of one request share.
type placeholders struct {
	names  map[string]string
	values item
	used   map[string]bool
}

// newPlaceholders takes over the attribute names and values of a request. Neither
// may be given but empty, nor without an expression.
func newPlaceholders(names map[string]string, values item, expressions ...*string) (*placeholders, error) {
	some := false
	for _, e := range expressions {
		some = some || e != nil
	}
	for _, given := range []struct {
		what    string
		isGiven bool
		n       int
	}{{"ExpressionAttributeNames", names != nil, len(names)}, {"ExpressionAttributeValues", values != nil, len(values)}} {
		switch {
		case given.isGiven && !some:
			return nil, invalid("%s can only be specified when using expressions", given.what)
		case given.isGiven && given.n == 0:
			return nil, invalid("%s must not be empty", given.what)
		}
	}
	for key, name := range names {
		if name == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
		}
		if len(key) < 2 || key[0] != '#' || wordLen(key[1:]) != len(key)-1 {
			return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
		}
	}
	for key := range values {
		if len(key) < 2 || key[0] != ':' || wordLen(key[1:]) != len(key)-1 {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
		}
	}
	admitted, err := admitItem(values)
	if err != nil {
		return nil, err
	}
	return &placeholders{names: names, values: admitted, used: map[string]bool{}}, nil
}

// done refuses placeholders that no expression used.
func (p *placeholders) done() error {
	for _, names := range []struct {
		what string
		keys []string
	}{{"ExpressionAttributeNames", unused(p.names, p.used)}, {"ExpressionAttributeValues", unused(p.values, p.used)}} {
		if len(names.keys) > 0 {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", names.what, strings.Join(names.keys, ", "))
		}
	}
	return nil
}

func unused[V any](given map[string]V, used map[string]bool) []string {
	var keys []string
	for key := range given {
		if !used[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
