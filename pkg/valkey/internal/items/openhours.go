package items

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// An hour of usage that is not over yet is in no other snapshot: those of its day and its month have an attribute for
// it, of openHour and the window. It has two that name them, which begin with opens. Readers see none of these. The keys
// of the three begin alike, and end in the window.
const openHour, opens = "<", ">"

// beside returns the key of the snapshot of another window, which begins alike.
func beside(k schema.Key, window string) schema.Key {
	end := strings.LastIndexByte(k.SK, '#')
	end = strings.LastIndexByte(k.SK[:max(end, 0)], '#') + 1
	return schema.Key{PK: k.PK, SK: k.SK[:end] + window}
}

// openHours are hours that snapshots name.
type openHours struct {
	hashes []string
	of     []int // the snapshot of each
}

// take takes the names of open hours out of snapshots.
func (o *openHours) take(of prefix, snapshots []attributes) {
	for i, it := range snapshots {
		for name := range it {
			switch window, open := strings.CutPrefix(name, openHour); {
			case open:
				k := beside(keyOf(it), window)
				o.hashes, o.of = append(o.hashes, of.item(k.PK, k.SK)), append(o.of, i)
				delete(it, name)
			case strings.HasPrefix(name, opens):
				delete(it, name)
			}
		}
	}
}

// addOpenHours adds the hours that snapshots in a place name to them: such a snapshot does not have their use. The sweep may
// add an hour between the two reads, and delete it. So a snapshot is read once more where an hour is not open; last says
// that this is that time.
func (s *Session) addOpenHours(ctx context.Context, place int, keys []string, snapshots []attributes, last bool) error {
	var open openHours
	open.take(s.db.prefixes[place], snapshots)
	if len(open.hashes) == 0 {
		return nil
	}
	hours, err := s.hours(ctx, place, open.hashes)
	if err != nil {
		return err
	}
	var over []int // snapshots
	for i, hour := range hours {
		if of := open.of[i]; !last && hour[opens+"day"] == "" && !slices.Contains(over, of) {
			over = append(over, of)
		}
	}
	for i, hour := range hours {
		if of := open.of[i]; !slices.Contains(over, of) {
			addUse(snapshots[of], hour)
		}
	}
	if len(over) == 0 {
		return nil
	}
	again := make([]string, len(over))
	for i, of := range over {
		again[i] = keys[of]
	}
	found, _, err := s.hashes(ctx, place, again)
	if err != nil {
		return err
	}
	for i, of := range over {
		snapshots[of] = found[i]
	}
	return s.addOpenHours(ctx, place, again, found, true)
}

// hours reads hashes of hours; none for what is no hash.
func (s *Session) hours(ctx context.Context, place int, hashes []string) ([]map[string]string, error) {
	answers, err := s.read(ctx, place, func(client rueidis.Client) []rueidis.Completed { return getAll(client, hashes) })
	if err != nil {
		return nil, err
	}
	all := make([]map[string]string, len(hashes))
	for i, r := range answers {
		if all[i], err = r.AsStrMap(); err != nil && !isAnswer(err, "WRONGTYPE") {
			return nil, s.db.translate(err)
		}
	}
	return all, nil
}

// addUse adds the numbers of an hour to a snapshot.
func addUse(to attributes, hour map[string]string) {
	for name, v := range hour {
		n, isNumber := new(big.Int).SetString(v, 10)
		if !isNumber || name == schema.AttrTTL {
			continue
		}
		if had, ok := to[name].(*types.AttributeValueMemberN); ok {
			if of, ok := new(big.Int).SetString(had.Value, 10); ok {
				n.Add(n, of)
			}
		}
		to[name] = &types.AttributeValueMemberN{Value: n.String()}
	}
}

// isUsage reports whether a key is of a snapshot of usage.
func isUsage(k schema.Key) bool {
	_, _, ok := schema.ParseUsageKey(k)
	return ok
}
