package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes of the counters.
const (
	AttrCounter       = "generation"
	AttrConfiguration = "configuration"
)

// Counters are the two counters that make a generation of a namespace, as far as an item has
// them. Both only rise, to at most MaxCounter.
type Counters struct {
	Changes       uint64 // of the stored records; 0 = never changed
	Configuration uint64 // of the configurations of replicas; 0 = never raised
}

// Generation returns the generation of limits that follow from both. Changes come first: records
// that were replaced never count as newer than those that replaced them, with any configuration
// of the replica that still has them.
func (c Counters) Generation() uint64 { return c.Changes<<32 | c.Configuration }

// Newest returns the greater value of each counter.
func (c Counters) Newest(d Counters) Counters {
	return Counters{Changes: max(c.Changes, d.Changes), Configuration: max(c.Configuration, d.Configuration)}
}

// ParseCounter reads the counter of changes of a namespace; there may be none.
func ParseCounter(table string, k Key, item map[string]types.AttributeValue) (uint64, error) {
	if item == nil {
		return 0, nil
	}
	r := NewReader(table, k, item)
	n := r.counter(AttrCounter)
	if r.Fault != nil {
		return 0, r.Fault
	}
	return n, nil
}

// ParseCounters reads the item with the counters of a namespace. There may be none, and it may
// have one of them.
func ParseCounters(table, ns string, item map[string]types.AttributeValue) (c Counters, err error) {
	r := NewReader(table, ConfigurationKey(ns), item)
	if item[AttrCounter] != nil {
		c.Changes = r.counter(AttrCounter)
	}
	if item[AttrConfiguration] != nil {
		c.Configuration = r.counter(AttrConfiguration)
	}
	if r.Fault != nil {
		return Counters{}, r.Fault
	}
	return c, nil
}

// RaiseCounter returns the part of a transaction that raises a namespace's counter of changes,
// if it is base. A refusal shows the item as it is.
func RaiseCounter(ns string, base uint64) *ItemWrite {
	w := NewUpdate(GenerationKey(ns))
	if base == 0 {
		w.RequireAbsent(AttrCounter)
	} else {
		w.Require(AttrCounter, "=", NumberAttribute(base))
	}
	w.Set(AttrCounter, NumberAttribute(base+1))
	return w
}

// TellCounter returns the part of a transaction that puts the value of a namespace's counter of
// changes where replicas look for it.
func TellCounter(ns string, changes uint64) *ItemWrite {
	w := NewUpdate(ConfigurationKey(ns))
	w.Set(AttrCounter, NumberAttribute(changes))
	return w
}

// RaiseConfiguration returns the update that raises a namespace's counter of configurations by
// one, and answers with its value. It names no other attribute, so that a policy can allow it alone.
func RaiseConfiguration(ns string) *ItemWrite {
	w := NewUpdate(ConfigurationKey(ns))
	w.Add(AttrConfiguration, 1)
	w.Answer, w.Shows = AnswerUpdated, false
	return w
}
