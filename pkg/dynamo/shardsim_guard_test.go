package dynamo

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// changes reports whether an update changes an attribute.
func changes(in *dynamodb.UpdateItemInput, is func(attr string) bool) bool {
	words := strings.FieldsFunc(*in.UpdateExpression, func(r rune) bool { return strings.ContainsRune(" ,=-", r) })
	return slices.ContainsFunc(words, func(word string) bool {
		attr, ok := in.ExpressionAttributeNames[word]
		return ok && is(attr)
	})
}

func isOne(attr string) func(string) bool { return func(a string) bool { return a == attr } }

func takesOnly(in *dynamodb.UpdateItemInput) bool {
	return !changes(in, isOne(schema.AttrEpoch)) && !changes(in, isOne(schema.AttrMoving))
}

func splits(in *dynamodb.UpdateItemInput) bool {
	return changes(in, isOne(schema.AttrMoving)) && changes(in, isOne(schema.AttrEpoch))
}

func absorbs(in *dynamodb.UpdateItemInput) bool {
	return changes(in, isOne(schema.AttrEpoch)) && !splits(in) && !changes(in, isOne(schema.AttrRetired))
}

// on applies a change to some of the updates.
func on(which func(*dynamodb.UpdateItemInput) bool, change func(*dynamodb.UpdateItemInput)) func(*dynamodb.UpdateItemInput) {
	return func(in *dynamodb.UpdateItemInput) {
		if which(in) {
			change(in)
		}
	}
}

// keepTokens has a split set tokens aside that it does not take.
func keepTokens(in *dynamodb.UpdateItemInput) {
	number := func(placeholder string) int64 {
		n, _ := strconv.ParseInt(in.ExpressionAttributeValues[placeholder].(*types.AttributeValueMemberN).Value, 10, 64)
		return n
	}
	assigned := map[string]string{} // placeholders of values by attribute
	set, add, _ := strings.Cut(strings.TrimPrefix(*in.UpdateExpression, "SET "), " ADD ")
	for assignment := range strings.SplitSeq(set, ", ") {
		name, value, _ := strings.Cut(assignment, "=")
		assigned[in.ExpressionAttributeNames[name]] = value
	}
	add, _, _ = strings.Cut(add, " REMOVE ")
	for assignment := range strings.SplitSeq(add, ", ") {
		name, value, _ := strings.Cut(assignment, " ")
		assigned[in.ExpressionAttributeNames[name]] = value
	}
	for attr, value := range assigned {
		if limit, ok := strings.CutSuffix(attr, "_"+schema.LimitMoving); ok {
			if tokens := assigned[limit+"_"+schema.LimitTokens]; tokens != "" {
				in.ExpressionAttributeValues[tokens] = schema.NumberAttribute(number(tokens) + number(value))
			}
		}
	}
}

// stayBehind has a merge leave the time of the last refill as it was.
func stayBehind(in *dynamodb.UpdateItemInput) {
	var old string
	for _, c := range clauses(in) {
		if c.is(schema.AttrRefilled, "=") {
			old = c.text[strings.IndexByte(c.text, ':'):]
		}
	}
	set, _, _ := strings.Cut(strings.TrimPrefix(*in.UpdateExpression, "SET "), " REMOVE ")
	for assignment := range strings.SplitSeq(set, ", ") {
		name, value, _ := strings.Cut(assignment, "=")
		if in.ExpressionAttributeNames[name] == schema.AttrRefilled {
			in.ExpressionAttributeValues[value] = in.ExpressionAttributeValues[old]
		}
	}
}

// overwrite has a shard be made in the place of any that is retired.
func overwrite(in *dynamodb.PutItemInput) {
	*in.ConditionExpression = strings.TrimSuffix(*in.ConditionExpression, " AND #ep < :ep")
	delete(in.ExpressionAttributeNames, "#ep")
	in.ExpressionAttributeValues = nil
}

// anyBirth has what a lane knows of a retired shard be of the one that its heir
// misses.
func anyBirth(l *lane) {
	if l.knows.view == nil || !l.knows.view.shard.Sharded() {
		return
	}
	for i := range l.todo {
		if c := &l.todo[i]; c.found != nil {
			found := *c.found
			found.shard.Birth = l.knows.view.shard.Other().Birth
			c.found = &found
		}
	}
}

// bury deletes retired shards that were absorbed.
func bury(s *shardSim) {
	for i, v := range s.items {
		if v == nil || !v.shard.Retired || s.awaited(v) {
			continue
		}
		k := s.site.shard(i)
		if _, err := s.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String(simTable), Key: k.Attributes()}); err != nil {
			s.t.Fatal(err)
		}
		s.look(i)
	}
}

// makeFull makes a shard that is missing, with all of its share.
func makeFull(s *shardSim, index int) bool {
	if index == 0 || s.items[index] != nil {
		return false
	}
	v := fullView(s.versions[0], 1, s.now)
	v.shard = schema.Shard{Index: schema.Heir(index), Level: schema.BornAt(index)}
	v.shard.Births[schema.BirthSlot(v.shard.Level)] = s.now
	for i := range v.balances {
		v.balances[i].moving = v.shard.Share(v.balances[i].whole).Capacity
	}
	if _, err := s.db.PutItem(context.Background(), makeInput(simTable, s.site, v, s.now)); err != nil {
		s.t.Fatal(err)
	}
	s.look(index)
	s.check()
	return false
}

// forget drops what waits to be given back.
func forget(s *shardSim) {
	for _, r := range s.replicas {
		for _, l := range r.lanes {
			l.queue = slices.DeleteFunc(l.queue, func(r *request) bool { return r.call == nil })
		}
	}
}

// TestShardSimulationFindsMissingRules takes away one rule at a time: a simulation
// that passes without a rule says nothing about it.
func TestShardSimulationFindsMissingRules(t *testing.T) {
	unpinned := without(func(c clause) bool { return !strings.HasPrefix(c.attr, schema.AttrSlot) })
	notEpoch := without(func(c clause) bool { return c.is(schema.AttrEpoch, "=") })
	otherTokens := without(func(c clause) bool { return c.is(schema.LimitTokens, "=") })
	elsewhere := func(s *shardSim, index int) bool { return s.current.lane.knows.index != index }
	withTTL := func(r *rand.Rand) shardFeatures {
		f := drawShardFeatures(r)
		f.ttl = true
		return f
	}
	for _, tc := range []struct {
		name     string
		without  shardSabotage
		features func(*rand.Rand) shardFeatures
	}{
		{"takes rest on the epoch", shardSabotage{update: on(takesOnly, notEpoch)}, drawShardFeatures},
		{"a split rests on the epoch", shardSabotage{update: on(splits, notEpoch)}, drawShardFeatures},
		{"a split takes what it sets aside", shardSabotage{update: on(splits, keepTokens)}, drawShardFeatures},
		{"a split removes the ttl", shardSabotage{update: on(splits, withoutRemoval)}, withTTL},
		{"a shard is made once", shardSabotage{put: overwrite}, drawShardFeatures},
		{"a retired shard stays for a while", shardSabotage{after: bury}, drawShardFeatures},
		{"a missing shard is not made", shardSabotage{get: makeFull}, drawShardFeatures},
		{"an absorbed shard is of the last split", shardSabotage{lane: anyBirth}, drawShardFeatures},
		{"an absorb rests on the item", shardSabotage{update: on(absorbs, unpinned)}, drawShardFeatures},
		{"an absorb rests on the balances", shardSabotage{update: on(absorbs, otherTokens)}, drawShardFeatures},
		{"an absorb is not before the last refill of both", shardSabotage{update: on(absorbs, stayBehind)}, drawShardFeatures},
		{"a missing shard is read before it is absorbed", shardSabotage{get: elsewhere}, drawShardFeatures},
		{"what is taken for no admitted request is given back", shardSabotage{after: forget}, drawShardFeatures},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if err := newShardSim(t, seed, tc.features, tc.without).run(); err != nil {
					t.Logf("number %d: %v", seed, err)
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
