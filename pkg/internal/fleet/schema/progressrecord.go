package schema

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// Attributes of the report of an aggregator.
const (
	attrBehind   = "behind"   // ms
	attrShards   = "shards"   // that it reads; absent = none
	attrFunction = "function" // 1: calls with records drive it
	attrStopped  = "stopped"  // 1: it ended in order
	attrProblem  = "problem"  // absent = none
)

// maxBehind is more than an aggregator can be behind, in ms: no stream has records of 34 years.
const maxBehind = 1 << 40

const (
	aggregatorsPK      = RegistryNS + "/AGGREGATORS#"
	skAggregatorPrefix = "#AGGREGATOR#"
)

// ProgressKey returns the key of the report of an aggregator.
func ProgressKey(id string) Key { return Key{aggregatorsPK, skAggregatorPrefix + id} }

// QueryProgress finds the reports of all aggregators. The table is not read consistently, as with [QueryReports].
func QueryProgress(table string) *dynamodb.QueryInput {
	return queryReports(table, aggregatorsPK, skAggregatorPrefix)
}

// PutProgress stores the report of an aggregator, which aggregator.Progress.Check must allow. The item is in no index.
func PutProgress(p *aggregator.Progress, now time.Time) *ItemWrite {
	item := ProgressKey(strings.Clone(p.ID)).Attributes()
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	item[AttrTTL] = NumberAttribute(now.Add(aggregator.ProgressAge).Unix())
	if p.Shards > 0 {
		item[attrShards], item[attrBehind] = NumberAttribute(p.Shards), NumberAttribute(min(p.Behind.Milliseconds(), maxBehind))
	}
	for attr, set := range map[string]bool{attrFunction: p.Function, attrStopped: p.Stopped} {
		if set {
			item[attr] = NumberAttribute(1)
		}
	}
	if p.Problem != "" {
		item[attrProblem] = TextAttribute(p.Problem)
	}
	return NewPut(item)
}

// DeleteProgress deletes the report of an aggregator, unless it is newer than a time.
func DeleteProgress(id string, written time.Time) *ItemWrite {
	return deleteReport(ProgressKey(id), written)
}

// ParseProgress reads the report of an aggregator, and when it was written. It does not set the age.
func ParseProgress(table string, item map[string]types.AttributeValue) (p aggregator.Progress, written time.Time, err error) {
	k, err := ItemKey(table, item)
	if err != nil {
		return aggregator.Progress{}, time.Time{}, err
	}
	r := NewReader(table, k, item)
	p = aggregator.Progress{ID: strings.TrimPrefix(k.SK, skAggregatorPrefix), Problem: r.optionalText(attrProblem)}
	written = time.UnixMilli(r.Int(AttrCreatedAt, MinTime, MaxTime))
	p.Shards, _ = r.Optional(attrShards, 1, MaxTime)
	behind, _ := r.Optional(attrBehind, 0, maxBehind)
	p.Behind = time.Duration(behind) * time.Millisecond
	_, p.Function = r.Optional(attrFunction, 1, 1)
	_, p.Stopped = r.Optional(attrStopped, 1, 1)
	if err := p.Check(); err != nil {
		r.Fail(AttrSK, "is of no report: %v", err)
	}
	if r.Fault != nil {
		return aggregator.Progress{}, time.Time{}, r.Fault
	}
	return p, written, nil
}
