package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// echoes reports whether a mistake that compiling finds at a path follows from a mistake of
// decoding, which is reported already. Compiling then misses a thing that stands in the file but
// could not be read.
func echoes(r *yamlcfg.Report, path string, mistakes yamlcfg.Problems) bool {
	item := unsoundAround(r, path)
	switch {
	case item == "":
		return false
	case len(mistakes) >= yamlcfg.MaxProblems || unread(r, path, mistakes): // enough is reported, or it follows
		return true
	}
	holder, field := fieldOf(path, item)
	switch field {
	case "entity", "resource", "parent", "limits": // of placeholders that match names
		return unread(r, item+".match", mistakes)
	case "consume", "reserve": // of names that limits has
		limits := holder + ".limits"
		_, given := r.Place(limits)
		return given && unread(r, limits, mistakes)
	case "match", "name", "local", "key", "rate_limit", "share_threshold":
		return false
	default: // of the item as a whole
		return true
	}
}

// unsoundAround returns the path of the innermost rule or descriptor around a path if it was
// decoded with a mistake, else "".
func unsoundAround(r *yamlcfg.Report, path string) string {
	for {
		if r.Unsound[path] {
			return path
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return ""
		}
		path = path[:i]
	}
}

// unread reports whether a path has no value, or has a mistake at it, below it or above it.
func unread(r *yamlcfg.Report, path string, mistakes yamlcfg.Problems) bool {
	at, ok := r.Place(path)
	if !ok { // one name may stand for a list of one
		at, ok = r.Place(strings.TrimSuffix(path, "[0]"))
	}
	return !ok || slices.ContainsFunc(mistakes, func(m yamlcfg.Problem) bool {
		return m.File == at.File && (isAt(m.Path, at.Path) || isAt(at.Path, m.Path))
	})
}

// isAt reports whether a path is another, or below it.
func isAt(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

var fieldPath = regexp.MustCompile(`^\.?(?:(takes\[\d+\])\.)?([^.[]*)`)

// fieldOf returns the key below the item that a path leads through. holder is the path that has the
// key: the item itself, or one of its takes.
func fieldOf(path, item string) (holder, field string) {
	m := fieldPath.FindStringSubmatch(path[len(item):])
	if m[1] != "" {
		item += "." + m[1]
	}
	return item, m[2]
}
