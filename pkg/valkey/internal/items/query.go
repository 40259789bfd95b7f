package items

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// maxPage is how many items one query returns at most.
const maxPage = 1000

// entry is one of a sorted set.
type entry struct {
	text  string
	place int
}

// Query implements awsdb.Items by two round trips: the entries, and their items. An item that cannot be read has its
// keys alone, as in BatchGetItem.
func (s *Session) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	q, err := queryOf(in)
	if err != nil {
		return nil, wrong(err)
	}
	entries, err := s.merged(ctx, q, s.db.placesOf(in))
	if err != nil {
		return nil, err
	}
	at, positions := make([]spot, len(entries)), make([]attributes, len(entries))
	var last attributes
	for i, e := range entries {
		pk, sk := q.pk, e.text
		if q.index != "" {
			parts := strings.SplitN(e.text, "\x00", 3)
			if len(parts) != 3 {
				return nil, wrong(fmt.Errorf("an entry of the index %s has %d parts, and not 3", q.index, len(parts)))
			}
			pk, sk = cmp.Or(parts[1], parts[0]), parts[2]
		}
		at[i], positions[i] = spot{e.place, s.db.prefixes[e.place].item(pk, sk), i}, q.position(e.text, pk, sk)
		if i == len(entries)-1 && int64(len(entries)) == q.limit {
			last = positions[i]
		}
	}
	all, faults, err := s.items(ctx, len(at), at)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{}, LastEvaluatedKey: last}
	for i, it := range all {
		switch {
		case faults[i] != nil:
			out.Items = append(out.Items, positions[i])
		case it != nil: // else it was deleted between the two
			out.Items = append(out.Items, it)
		}
	}
	out.Count = int32(len(out.Items)) // #nosec G115 -- at most maxPage
	return out, nil
}

// placesOf returns the places that a query is for.
func (d *DB) placesOf(in *dynamodb.QueryInput) []int {
	if len(d.prefixes) > 1 {
		if place, known := schema.HomeOfQuery(in); known {
			return []int{place}
		}
	}
	return d.allPlaces()
}

// merged reads the first entries of a range in places, in order.
func (s *Session) merged(ctx context.Context, q *query, places []int) ([]entry, error) {
	found := make([][]string, len(places))
	if err := inPlaces(len(places), func(i int) (err error) {
		found[i], err = s.entries(ctx, q, places[i])
		return err
	}); err != nil {
		return nil, err
	}
	var all []entry
	for i, texts := range found {
		for _, t := range texts {
			all = append(all, entry{t, places[i]})
		}
	}
	if len(places) == 1 {
		return all, nil
	}
	slices.SortFunc(all, func(a, b entry) int {
		if q.backward {
			a, b = b, a
		}
		return strings.Compare(a.text, b.text)
	})
	return all[:min(int64(len(all)), q.limit)], nil
}

// query is a range of the entries of a partition.
type query struct {
	index     string // "" = the table
	pk        string
	set       string // name of the sorted set
	low, high string
	limit     int64
	backward  bool
}

// queryOf reads a query. It knows the forms that package schema writes.
func queryOf(in *dynamodb.QueryInput) (*query, error) {
	value := func(name string) string { return text(in.ExpressionAttributeValues[name]) }
	q := &query{index: aws.ToString(in.IndexName), pk: value(":pk"), low: "-", high: "+", limit: maxPage}
	q.set = "p:" + q.pk
	if q.index != "" {
		q.set = "g" + strings.TrimPrefix(q.index, "GSI") + ":" + q.pk
	}
	switch condition := aws.ToString(in.KeyConditionExpression); condition {
	case "#pk = :pk":
	case "#pk = :pk AND begins_with(#sk, :sk)":
		q.low, q.high = "["+value(":sk"), "("+value(":sk")+"\xff" // no text has the byte 0xff
	case "#pk = :pk AND #sk BETWEEN :first AND :last":
		q.low, q.high = "["+value(":first"), "["+value(":last")
		if q.index != "" {
			q.high = "(" + value(":last") + "\x01" // an entry goes on with \0
		}
	default:
		return nil, fmt.Errorf("a query has the condition %q", condition)
	}
	if in.Limit != nil {
		q.limit = min(int64(*in.Limit), maxPage)
	}
	q.backward = in.ScanIndexForward != nil && !*in.ScanIndexForward
	if from := in.ExclusiveStartKey; from != nil {
		at := text(from["SK"])
		if q.index != "" {
			at = entryOf(text(from[q.index+"SK"]), text(from["PK"]), at)
		}
		if q.backward {
			q.high = "(" + at
		} else {
			q.low = "(" + at
		}
	}
	return q, nil
}

// entryOf is the entry of an index that leads to an item, see places.lua.
func entryOf(sort, pk, sk string) string {
	if sort == pk {
		pk = ""
	}
	return sort + "\x00" + pk + "\x00" + sk
}

// position is where the page behind an entry begins.
func (q *query) position(entry, pk, sk string) attributes {
	at := attributes{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}
	if q.index != "" {
		sort, _, _ := strings.Cut(entry, "\x00")
		at[q.index+"PK"] = &types.AttributeValueMemberS{Value: q.pk}
		at[q.index+"SK"] = &types.AttributeValueMemberS{Value: sort}
	}
	return at
}

// entries reads the first entries of a range in a place.
func (s *Session) entries(ctx context.Context, q *query, place int) ([]string, error) {
	set := s.db.prefixes[place].key(q.set)
	answers, err := s.read(ctx, place, func(client rueidis.Client) []rueidis.Completed {
		if q.backward {
			return []rueidis.Completed{client.B().Zrevrangebylex().Key(set).Max(q.high).Min(q.low).Limit(0, q.limit).Build()}
		}
		return []rueidis.Completed{client.B().Zrangebylex().Key(set).Min(q.low).Max(q.high).Limit(0, q.limit).Build()}
	})
	if err != nil {
		return nil, err
	}
	found, err := answers[0].AsStrSlice()
	return found, s.db.translate(err)
}
