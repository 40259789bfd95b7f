package config

import (
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checkHierarchy refuses cycles and chains that are too long. It warns of entities that cascade
// without a parent.
func checkHierarchy(d *yamlcfg.Decoder, entities []yamlcfg.Entry[entity]) {
	h := hierarchy{Decoder: d, entities: entities, index: make(map[string]int, len(entities)), levels: make([]int, len(entities))}
	for i, e := range entities {
		h.index[e.Name] = i
		if e.Value.cascade && e.Value.parent == "" {
			d.Warn(d.Find(yamlcfg.Join(e.Path, "cascade")), "has no effect, as the entity has no parent here: add parent, or remove cascade")
		}
	}
	for _, e := range entities {
		h.level(e.Name)
	}
}

// The states of an entity whose level is not known.
const (
	levelUnknown = 0
	levelOpen    = -1 // the chain above it is being followed
	levelCycle   = -2 // the chain runs into a cycle
)

type hierarchy struct {
	*yamlcfg.Decoder

	entities []yamlcfg.Entry[entity]
	index    map[string]int
	levels   []int
}

// level returns the number of entities in the chain from id upwards.
func (h *hierarchy) level(id string) int {
	i, ok := h.index[id]
	if !ok {
		return 1 // an entity that is not in the file ends the chain
	}
	if h.levels[i] == levelOpen {
		h.Fail(h.Find(yamlcfg.Join(h.entities[i].Path, "parent")), "the entities are one another's parents, %s: break the cycle", h.chain(i, id))
		return levelCycle
	}
	if h.levels[i] != levelUnknown {
		return h.levels[i]
	}
	level := 1
	if parent := h.entities[i].Value.parent; parent != "" {
		h.levels[i] = levelOpen
		level = h.level(parent)
		if level != levelCycle {
			level++
		}
	}
	if level == limiter.MaxLevels+1 {
		h.Fail(h.Find(yamlcfg.Join(h.entities[i].Path, "parent")), "the chain has more than %d entities, %s: make it shorter", limiter.MaxLevels, h.chain(i, ""))
	}
	h.levels[i] = level
	return level
}

// chain returns the names from entity i upwards, to the end of the chain or to last. It returns at
// most one more than a chain may have.
func (h *hierarchy) chain(i int, last string) string {
	names := []string{h.entities[i].Name}
	for len(names) <= limiter.MaxLevels {
		parent := h.entities[i].Value.parent
		if parent == "" {
			break
		}
		names = append(names, parent)
		next, ok := h.index[parent]
		if !ok || parent == last {
			break
		}
		i = next
	}
	return strings.Join(names, " → ")
}
