package items

import (
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// slots is how many slots of keys a cluster has.
const slots = 16384

// prefix begins all keys of a place: {tag}:
type prefix string

// key returns a key of the place.
func (p prefix) key(name string) string { return string(p) + name }

// item returns the key of an item.
func (p prefix) item(pk, sk string) string { return string(p) + "i:" + pk + "\x00" + sk }

// prefixes returns those of the places of a table. In a cluster they are the homes of package schema.
func prefixes(table string, clustered bool) []prefix {
	if !clustered {
		return []prefix{prefix("{" + table + "}:")}
	}
	all := make([]prefix, schema.IndexPartitions)
	for i := range all {
		all[i] = prefix("{" + tag(table, i) + "}:")
	}
	return all
}

// Slots returns the slots of a cluster that the keys of a table are in, by place.
func Slots(table string) []int {
	all := make([]int, schema.IndexPartitions)
	for i := range all {
		all[i] = slotOf(tag(table, i))
	}
	return all
}

// tag returns the hash tag of a place: the name of the table and the first number by which it is in the part of
// the slots that is the place's. So the places of each table are spread evenly.
func tag(table string, place int) string {
	for n := 0; ; n++ {
		tag := table + ":" + strconv.Itoa(n)
		if slotOf(tag)/(slots/schema.IndexPartitions) == place {
			return tag
		}
	}
}

// slotOf returns the slot of a cluster that a hash tag is in.
//
// https://valkey.io/topics/cluster-spec/
func slotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % slots)
}
