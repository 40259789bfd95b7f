package items

import (
	"context"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// whole adds the open hours of snapshots of usage in a place to them. Use of an hour is in one of the two that are
// read here, and never in both: a day that names an hour does not have it.
func (s *Session) whole(ctx context.Context, place int, snapshots []attributes) error {
	var hashes []string
	var of []attributes
	for _, it := range snapshots {
		for name := range it {
			switch window, open := strings.CutPrefix(name, openHour); {
			case open:
				k := beside(keyOf(it), window)
				hashes, of = append(hashes, s.db.prefixes[place].item(k.PK, k.SK)), append(of, it)
				delete(it, name)
			case strings.HasPrefix(name, opens):
				delete(it, name)
			}
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	hours, _, err := s.hashes(ctx, place, hashes)
	if err != nil {
		return err
	}
	for i, hour := range hours {
		addUse(of[i], hour)
	}
	return nil
}

// addUse adds the numbers of an hour to a snapshot.
func addUse(to, hour attributes) {
	for name, v := range hour {
		n, isNumber := numberOf(v)
		if !isNumber || name == schema.AttrTTL {
			continue
		}
		if had, isNumber := numberOf(to[name]); isNumber {
			n.Add(n, had)
		}
		to[name] = &types.AttributeValueMemberN{Value: n.String()}
	}
}

func numberOf(v types.AttributeValue) (*big.Int, bool) {
	n, isNumber := v.(*types.AttributeValueMemberN)
	if !isNumber {
		return nil, false
	}
	return new(big.Int).SetString(n.Value, 10)
}

// isUsage reports whether a key is of a snapshot of usage.
func isUsage(k schema.Key) bool {
	_, _, ok := schema.ParseUsageKey(k)
	return ok
}
