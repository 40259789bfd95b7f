package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// Diff writes the members that a change alters, one a line: - before, + after.
func (c *Change) Diff() (string, error) {
	before, err := members(c.Before())
	if err != nil {
		return "", err
	}
	after, err := members(c.After())
	if err != nil {
		return "", err
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		old, was := before[path]
		wanted, is := after[path]
		if was && is && old == wanted {
			continue
		}
		if was {
			fmt.Fprintf(&out, "- %s: %s\n", path, old)
		}
		if is {
			fmt.Fprintf(&out, "+ %s: %s\n", path, wanted)
		}
	}
	return out.String(), nil
}

// members returns the members of a record by path, without the names that the subject has.
func members(content any) (map[string]string, error) {
	out := make(map[string]string)
	switch v := content.(type) {
	case api.Limits:
		for name, l := range v.Limits {
			out["limits."+name] = money.Amounts(name, l.String())
		}
		if v.Inherit != nil {
			out["inherit"] = strconv.FormatBool(*v.Inherit)
		}
		if v.OnUnavailable != "" {
			out["on_unavailable"] = v.OnUnavailable
		}
	case api.Entity:
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, err
		}
		for name, value := range all {
			out[name] = string(value)
		}
		delete(out, "id")
		delete(out, "metadata")
		for name, value := range v.Metadata {
			out["metadata."+api.Name(name).String()] = api.Name(value).String()
		}
	}
	return out, nil
}
