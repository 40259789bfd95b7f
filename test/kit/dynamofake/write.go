package dynamofake

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// write is one change of one item, or with neither put, update nor remove only its
// condition.
type write struct {
	table     string
	key       item // nil for a put
	put       item
	update    update
	isUpdate  bool
	remove    bool
	condition condition
	tellOld   bool // a failed condition returns the item
}

// effect is the planned effect of a write.
type effect struct {
	table    *table
	at       address
	old, now item
	write    bool // false for a condition alone
}

// newWrite parses the expressions of a write. key or put is set.
func newWrite(w write, key, put item, conditionExpression, updateExpression *string, names map[string]string, values item, onFailure types.ReturnValuesOnConditionCheckFailure) (*write, error) {
	var err error
	if key != nil {
		if w.key, err = admitItem(key); err != nil {
			return nil, err
		}
	}
	if put != nil {
		if w.put, err = admitItem(put); err != nil {
			return nil, err
		}
	}
	p, err := newPlaceholders(names, values, conditionExpression, updateExpression)
	if err != nil {
		return nil, err
	}
	if w.update, err = p.update(updateExpression); err != nil {
		return nil, err
	}
	if w.condition, err = p.condition("ConditionExpression", conditionExpression); err != nil {
		return nil, err
	}
	w.tellOld = onFailure == types.ReturnValuesOnConditionCheckFailureAllOld
	return &w, p.done()
}

// planWrite computes the effect of a write, and changes nothing. When the condition
// fails the effect holds the item as it is.
func (db *DB) planWrite(w *write) (e effect, err error) {
	if e.table, err = db.table(&w.table); err != nil {
		return e, err
	}
	if w.put != nil {
		e.at, err = e.table.home(w.put)
	} else {
		e.at, err = e.table.address(w.key)
	}
	if err != nil {
		return e, err
	}
	for _, name := range w.update.names() {
		if slices.Contains(e.table.keys.names(), name) {
			return e, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", name)
		}
	}
	e.old = e.table.get(e.at)
	e.now = e.old
	ok, err := w.condition.holds(e.old)
	if err != nil {
		return e, err
	}
	if !ok {
		if w.tellOld {
			return e, conditionFailed(cloneItem(e.old))
		}
		return e, conditionFailed(nil)
	}
	e.write = true
	switch {
	case w.put != nil:
		e.now = w.put
	case w.isUpdate:
		base := e.old
		if base == nil {
			base = w.key
		}
		if e.now, err = w.update.apply(base); err != nil {
			return e, err
		}
	case w.remove:
		e.now = nil
	default:
		e.write = false
	}
	if e.write && e.now != nil {
		err = e.table.check(e.now)
	}
	return e, err
}

// commit applies the effect.
func (e effect) commit() {
	if e.write {
		e.table.set(e.at, e.now)
	}
}

// units is the capacity that a write consumes, also one whose condition failed.
func (e effect) units() units {
	u := units{table: kilobytes(max(itemSize(e.old), itemSize(e.now)))}
	if !e.write {
		return u
	}
	for _, x := range e.table.indexes {
		if n := x.units(e.old, e.now); n > 0 {
			if u.indexes == nil {
				u.indexes = map[string]float64{}
			}
			u.indexes[x.name] = n
		}
	}
	return u
}

// billed is the capacity that a write costs: one that was applied, or whose condition
// failed.
func (e effect) billed(err error, factor float64) int64 {
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed || err == nil {
		return int64(factor * e.units().total())
	}
	return 0
}
