package comparison_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// exacts follows the exact writes of all replicas. It measures how long each takes from its
// first try until it is applied, and when buckets came under other limits. A nil one follows
// none.
type exacts struct {
	mu      sync.Mutex
	trying  map[string]*streak // by item and kind, and those of leases by replica
	longest map[string]time.Duration
	version map[string]string // of the limits, by item
	changed []time.Time       // when items came under other limits
	split   []time.Time       // when items were split
	levels  map[string]string
}

// streak is one exact write that is tried again and again.
type streak struct {
	kind        string
	first, last time.Time
	tries       int
}

// The kinds of exact writes.
const (
	exactLease  = "lease"
	exactLimits = "limits"
	exactSplit  = "split"
	exactMerge  = "merge"
)

// given is how long a lease write must not be tried to count as given up: a lease that is
// asked for no more lets its write go. The others are tried until they are applied.
const given = 300 * time.Millisecond

func newExacts() *exacts {
	return &exacts{trying: make(map[string]*streak), longest: make(map[string]time.Duration), version: make(map[string]string), levels: make(map[string]string)}
}

// kindOf returns the kind of an exact write, "" where an update is none of those.
func kindOf(in *dynamodb.UpdateItemInput) string {
	if in.ConditionExpression == nil {
		return ""
	}
	attrs := func(text string) (all []string) {
		for name := range strings.FieldsFuncSeq(text, func(c rune) bool { return c != '#' && (c < '0' || c > '9') }) {
			if attr, ok := in.ExpressionAttributeNames[name]; ok {
				all = append(all, attr)
			}
		}
		return all
	}
	if !slices.Contains(attrs(*in.ConditionExpression), schema.AttrSerial) {
		return ""
	}
	changes := attrs(*in.UpdateExpression)
	for _, kind := range []struct {
		name  string
		attrs []string
	}{
		{exactSplit, []string{schema.AttrMoving}},
		{exactMerge, []string{schema.AttrRetired, schema.AttrLevel}},
		{exactLimits, []string{schema.AttrVersion}},
		{exactLease, []string{schema.AttrLeases}},
	} {
		if slices.ContainsFunc(kind.attrs, func(attr string) bool { return slices.Contains(changes, attr) }) {
			return kind.name
		}
	}
	return ""
}

// removes reports whether an update removes an attribute.
func removes(in *dynamodb.UpdateItemInput, attr string) bool {
	_, removed, _ := strings.Cut(*in.UpdateExpression, "REMOVE ")
	for name := range strings.SplitSeq(removed, ", ") {
		if in.ExpressionAttributeNames[name] == attr {
			return true
		}
	}
	return false
}

// sets reports whether an update sets an attribute to the number that an item has.
func sets(in *dynamodb.UpdateItemInput, attr string, item map[string]types.AttributeValue) bool {
	is, _ := item[attr].(*types.AttributeValueMemberN)
	for name, of := range in.ExpressionAttributeNames {
		if _, value, found := strings.Cut(*in.UpdateExpression, name+"="); found && of == attr && is != nil {
			value, _, _ = strings.Cut(value, " ")
			will, _ := in.ExpressionAttributeValues[strings.TrimSuffix(value, ",")].(*types.AttributeValueMemberN)
			return will != nil && will.Value == is.Value
		}
	}
	return false
}

// key returns under which a write is followed.
func (e *exacts) key(replica int, in *dynamodb.UpdateItemInput, kind string) string {
	switch {
	case kind == exactLease:
		kind += strconv.Itoa(replica)
	case kind == exactSplit && removes(in, schema.AttrMoving):
		kind += " end"
	}
	return text(in.Key["PK"]) + " " + kind
}

// sent records that a replica sends an update.
func (e *exacts) sent(replica int, in *dynamodb.UpdateItemInput) {
	if e == nil {
		return
	}
	kind := kindOf(in)
	if kind == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key, now := e.key(replica, in, kind), time.Now()
	s := e.trying[key]
	if s == nil || kind == exactLease && now.Sub(s.last) > given {
		s = &streak{kind: kind, first: now}
		e.trying[key] = s
	}
	s.last = now
	s.tries++
}

// done notes the outcome of an update.
func (e *exacts) done(replica int, in *dynamodb.UpdateItemInput, out *dynamodb.UpdateItemOutput, err error) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if err != nil {
		e.refused(replica, in, err)
		return
	}
	if kind := kindOf(in); kind != "" {
		key := e.key(replica, in, kind)
		if s := e.trying[key]; s != nil {
			e.longest[kind] = max(e.longest[kind], now.Sub(s.first))
		}
		delete(e.trying, key)
	}
	if pk := text(in.Key["PK"]); strings.Contains(pk, "/BUCKET#") {
		e.saw(&e.changed, e.version, pk, schema.AttrVersion, out.Attributes, now)
		e.saw(&e.split, e.levels, pk, schema.AttrLevel, out.Attributes, now)
	}
}

// refused notes that an update was refused. A first try that was planned before another
// exact write, by its epoch, does not count: it may have nothing left to do.
func (e *exacts) refused(replica int, in *dynamodb.UpdateItemInput, err error) {
	refusal := (*types.ConditionalCheckFailedException)(nil)
	kind := kindOf(in)
	if kind == "" || !errors.As(err, &refusal) {
		return
	}
	key := e.key(replica, in, kind)
	if _, moving := refusal.Item[schema.AttrMoving]; kind == exactSplit && (moving != removes(in, schema.AttrMoving) || sets(in, schema.AttrLevel, refusal.Item)) {
		delete(e.trying, key) // another replica has split it, or has finished the split
		return
	}
	if s := e.trying[key]; s == nil || s.tries > 1 {
		return
	}
	is, _ := refusal.Item[schema.AttrEpoch].(*types.AttributeValueMemberN)
	for name, attr := range in.ExpressionAttributeNames {
		if _, value, found := strings.Cut(*in.ConditionExpression, name+"="); found && attr == schema.AttrEpoch && is != nil {
			value, _, _ = strings.Cut(value, " ")
			if was, ok := in.ExpressionAttributeValues[value].(*types.AttributeValueMemberN); ok && was.Value != is.Value {
				delete(e.trying, key)
			}
		}
	}
}

// saw records when an attribute of an item changed.
func (e *exacts) saw(times *[]time.Time, known map[string]string, pk, attr string, item map[string]types.AttributeValue, now time.Time) {
	n, ok := item[attr].(*types.AttributeValueMemberN)
	if !ok {
		return
	}
	if was, seen := known[pk]; seen && was != n.Value {
		*times = append(*times, now)
	}
	known[pk] = n.Value
}

// ends returns how long the slowest exact write of each kind took. One that was not
// applied counts until its last try.
func (e *exacts) ends() map[string]time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.trying {
		e.longest[s.kind] = max(e.longest[s.kind], s.last.Sub(s.first))
	}
	return e.longest
}

// first returns when something happened first after a time; an error where it did not.
func first(times []time.Time, after time.Time) (time.Duration, error) {
	for _, at := range times {
		if at.After(after) {
			return at.Sub(after), nil
		}
	}
	return 0, errors.New("never")
}
