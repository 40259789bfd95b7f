package items

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// write is a conditional write of one item, as items.lua reads it. Its words are: kind, which image is
// wanted, the keys; the number of attributes to be read, and those; the condition; its actions.
type write struct {
	kind      string // U an update, P a put, D a delete, C a condition alone
	pk, sk    string
	image     string   // of the item afterwards that is wanted: noImage, wholeImage, or a serial number, see awsdb.ChangesSince
	reads     []string // all attributes that the condition and the actions are about
	condition []string
	actions   actions
	asked     types.ReturnValuesOnConditionCheckFailure
	meter     meter
}

// The images that are not those of a serial number.
const (
	noImage    = ""
	wholeImage = "all"
)

// entryNames are the attributes that sorted sets lead to an item by, see places.lua, and by which it expires.
var entryNames = []string{
	schema.AttrSK, schema.AttrTTL, schema.AttrGSI1PK, schema.AttrGSI1SK, schema.AttrGSI2PK, schema.AttrGSI2SK,
	schema.AttrGSI3PK, schema.AttrGSI3SK, schema.AttrGSI4PK, schema.AttrGSI4SK,
}

// exact reports whether the write is one of those that are few and that nothing makes good: all but takes,
// charges and refunds, and new buckets.
func (w *write) exact() bool {
	switch ofBucket := schema.IsBucket(w.itemKey()); {
	case w.kind == "P":
		return !ofBucket
	case w.kind == "U" && ofBucket:
		for i := 1; i < len(w.condition); i++ {
			if w.condition[i] == schema.AttrSerial && w.condition[i-1] == "=" {
				return true
			}
		}
		return false
	}
	return w.kind != "C"
}

// actions are the changes of attributes by a write. Their words are four numbers, those of the first three and of the last
// one, and then the fields in order.
type actions struct {
	set      []string // names and values, in turn
	lessened []string // names and values, in turn: numbers, less the attributes that the next field has
	by       []string
	added    []string // names and numbers, in turn
	removed  []string
}

// words appends the words of the actions.
func (a *actions) words(to []string) []string {
	to = append(to, strconv.Itoa(len(a.set)/2), strconv.Itoa(len(a.lessened)/2), strconv.Itoa(len(a.added)/2), strconv.Itoa(len(a.removed)))
	to = append(append(append(to, a.set...), a.lessened...), a.added...)
	return append(append(to, a.by...), a.removed...)
}

// itemKey returns the key of the item.
func (w *write) itemKey() schema.Key { return schema.Key{PK: w.pk, SK: w.sk} }

// words appends the words of the write.
func (w *write) words(to []string) []string {
	to = append(to, w.kind, w.image, "S"+w.pk, "S"+w.sk, strconv.Itoa(len(w.reads)))
	to = append(to, w.reads...)
	to = append(to, w.condition...)
	return w.actions.words(to)
}

// keyed begins a write of the item with a key.
func keyed(kind string, key attributes, condition *string, names map[string]string, values attributes, asked types.ReturnValuesOnConditionCheckFailure) (write, *compiler) {
	c := &compiler{names: names, values: values, read: make([]string, 0, 2+len(names))}
	c.reads(schema.AttrPK)
	return write{kind: kind, pk: text(key[schema.AttrPK]), sk: text(key[schema.AttrSK]), image: noImage, condition: c.condition(condition), asked: asked}, c
}

// done takes over the results of the compiler.
func (w *write) done(c *compiler) (write, error) {
	w.reads, w.meter = c.read, c.meter
	return *w, c.err
}

func updating(u *types.Update) (write, error) {
	w, c := keyed("U", u.Key, u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure)
	w.actions = c.update(u.UpdateExpression)
	if slices.ContainsFunc(c.read, func(attr string) bool { return slices.Contains(entryNames, attr) }) {
		c.reads(entryNames...)
	}
	return w.done(c)
}

func putting(p *types.Put) (write, error) {
	w, c := keyed("P", p.Item, p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure)
	if !slices.Equal(w.condition, ifAbsent) {
		c.reads(entryNames...)
	}
	all, err := pairs(p.Item)
	if err != nil {
		return w, err
	}
	w.actions.set = all[:0]
	for i := 0; i < len(all); i += 2 {
		if c.meter.set(all[i], all[i+1]); !c.meter.counts(all[i], all[i+1]) {
			w.actions.set = append(w.actions.set, all[i], all[i+1])
		}
	}
	return w.done(c)
}

// ifAbsent is the condition that there is no item.
var ifAbsent = []string{"!", schema.AttrPK}

// pairs returns names and encoded values in turn, texts last: a server seeks an attribute from the front, and takes are
// about numbers.
func pairs(of attributes) ([]string, error) {
	all := make([]string, 0, 2*len(of))
	var texts []string
	for name, v := range of {
		s, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("the attribute %q: %w", name, err)
		}
		if s[0] == 'S' {
			texts = append(texts, name, s)
		} else {
			all = append(all, name, s)
		}
	}
	return append(all, texts...), nil
}

func deleting(d *types.Delete) (write, error) {
	w, c := keyed("D", d.Key, d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure)
	c.reads(entryNames...)
	return w.done(c)
}

func checking(k *types.ConditionCheck) (write, error) {
	w, c := keyed("C", k.Key, k.ConditionExpression, k.ExpressionAttributeNames, k.ExpressionAttributeValues, k.ReturnValuesOnConditionCheckFailure)
	return w.done(c)
}

// transacting returns a part of a transaction.
func transacting(t *types.TransactWriteItem) (write, error) {
	switch {
	case t.Update != nil:
		return updating(t.Update)
	case t.Put != nil:
		return putting(t.Put)
	case t.Delete != nil:
		return deleting(t.Delete)
	}
	return checking(t.ConditionCheck)
}
