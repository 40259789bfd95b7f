package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	attrCounter  = "generation" // of generation records, changes and audit events
	attrRefs     = "refs"       // of a change: what it changed; absent = anything
	attrRefKind  = "kind"
	attrChangeAt = "at" // Unix ms

	// changeTimeout bounds a change whose caller set no deadline.
	changeTimeout = 10 * time.Second
	// maxChangeRefs keeps the record of a change small; one of more says that anything changed.
	maxChangeRefs = 100
)

// edit is what a change does at a generation.
type edit struct {
	writes []types.TransactWriteItem // at most 97
	refs   []limiter.Ref             // what it changes; nil = anything
	event  limiter.AuditEvent
}

// change applies one change of a namespace: its writes, the raised counter, the
// record that tells other replicas, and the audit event, in one transaction.
// prepare is called with the generation that the change will have, while it is certain
// that no other change can come between what it reads and what is written; it is
// called again when there was one.
func (c *catalog) change(ctx context.Context, namespace string, prepare func(ctx context.Context, sp *space, generation uint64) (edit, error)) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	sp, err := c.use(ctx, namespace)
	if err != nil {
		return err
	}
	ctx, cancel := boundChange(ctx)
	defer cancel()
	if err := sp.begin(ctx); err != nil {
		return err
	}
	defer sp.end()
	for base := sp.newest(); ; {
		e, err := prepare(ctx, sp, base+1)
		if err != nil {
			return err
		}
		err = c.commit(ctx, c.transaction(sp, base, e))
		code, item := awsdb.ReasonAt(err, 0)
		switch {
		case err == nil:
			sp.saw(base + 1)
			c.tell(sp, base, base+1, c.all.Load(), e.refs)
			return nil
		case code != awsdb.ConditionFailed:
			return fmt.Errorf("changing namespace %.100q in table %s: %w", namespace, c.table, awsdb.Translate(err))
		}
		if base, err = c.parseCounter(generationKey(sp.id), item); err != nil {
			return err
		}
		sp.saw(base)
	}
}

// boundChange bounds a change by changeTimeout, unless its caller set a deadline.
func boundChange(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, changeTimeout)
}

// transaction returns the request that applies an edit, if the counter is base.
func (c *catalog) transaction(sp *space, base uint64, e edit) *dynamodb.TransactWriteItemsInput {
	now := c.now()
	e.event.Generation, e.event.Time, e.event.ID = base+1, now, limiter.AuditID(now, base+1)
	return &dynamodb.TransactWriteItemsInput{
		TransactItems: slices.Concat([]types.TransactWriteItem{
			raiseCounter(c.table, sp.id, base),
			putItem(c.table, changeItem(sp.id, base+1, now, e.refs)),
			putItem(c.table, auditItem(sp.id, &e.event)),
		}, e.writes),
		ClientRequestToken: aws.String(rand.Text()),
	}
}

// raiseCounter raises a namespace's counter from base.
func raiseCounter(table, ns string, base uint64) types.TransactWriteItem {
	condition := "#generation = :base"
	values := map[string]types.AttributeValue{":base": numberAttribute(base), ":next": numberAttribute(base + 1)}
	if base == 0 {
		condition = "attribute_not_exists(#generation)"
		delete(values, ":base")
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &table,
		Key:                                 generationKey(ns).attributes(),
		UpdateExpression:                    aws.String("SET #generation = :next"),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            map[string]string{"#generation": attrCounter},
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// commit sends a transaction until its outcome is known, as long as the context
// allows. Its token makes DynamoDB apply it once, however often it is sent.
func (c *catalog) commit(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	doubtful := false
	for try := 1; ; try++ {
		_, err := c.client.TransactWriteItems(ctx, in)
		kind := awsdb.KindOf(err)
		if err == nil || kind != nil && !awsdb.MayPass(kind) {
			return err
		}
		doubtful = doubtful || errors.Is(kind, limiter.ErrUncertain)
		if !doubtful && awsdb.IsRefused(err) {
			return err
		}
		if awsdb.Pause(ctx, awsdb.Goroutines{}, try) == nil {
			continue
		}
		if doubtful {
			return fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		}
		return err
	}
}

// parseCounter reads a generation record; there may be none.
func (c *catalog) parseCounter(k key, item map[string]types.AttributeValue) (uint64, error) {
	if item == nil {
		return 0, nil
	}
	r := newRecordReader(c.table, k, item)
	n := r.uint(attrCounter, 1)
	if r.fault != nil {
		return 0, r.fault
	}
	return n, nil
}

// changeItem returns the record of a change: what other replicas read to know
// which of their records are old.
func changeItem(ns string, generation uint64, now time.Time, refs []limiter.Ref) map[string]types.AttributeValue {
	k := changeKey(ns, generation)
	item := k.attributes()
	for name, value := range namespaceIndex(ns, k) {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	item[attrCounter] = numberAttribute(generation)
	item[attrChangeAt] = numberAttribute(now.UnixMilli())
	item[attrTTL] = numberAttribute(now.Add(changeTTL).Unix())
	if list := refsAttribute(refs); list != nil {
		item[attrRefs] = list
	}
	return item
}

// refsAttribute returns refs as an attribute; nil when they are too many, or have
// names that are too long for one.
func refsAttribute(refs []limiter.Ref) types.AttributeValue {
	if refs == nil || len(refs) > maxChangeRefs {
		return nil
	}
	list := make([]types.AttributeValue, len(refs))
	size := 0
	for i, ref := range refs {
		if size += len(ref.Entity) + len(ref.Resource); size > maxChangeRefs*maxNameAttribute/4 {
			return nil
		}
		list[i] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			attrRefKind: numberAttribute(int(ref.Kind)), attrEntity: textAttribute(ref.Entity), attrResource: textAttribute(ref.Resource),
		}}
	}
	return &types.AttributeValueMemberL{Value: list}
}

// parseChange reads what a change changed; nil for anything.
func parseChange(table, ns string, generation uint64, item map[string]types.AttributeValue) ([]limiter.Ref, error) {
	r := newRecordReader(table, changeKey(ns, generation), item)
	if r.item[attrRefs] == nil {
		return nil, nil
	}
	list, ok := r.item[attrRefs].(*types.AttributeValueMemberL)
	if !ok {
		r.fail(attrRefs, "is %s; it must be a list", typeName(r.item[attrRefs]))
		return nil, r.fault
	}
	refs := make([]limiter.Ref, 0, len(list.Value))
	for i, element := range list.Value {
		m, ok := element.(*types.AttributeValueMemberM)
		if !ok {
			r.fail(attrRefs, "has %s as element %d; it must be a map", typeName(element), i)
			return nil, r.fault
		}
		ref := newRecordReader(table, r.key, m.Value)
		kind := ref.int(attrRefKind, int64(limiter.RefEntity), int64(limiter.RefSystemLimits))
		refs = append(refs, limiter.Ref{Kind: limiter.RefKind(kind), Entity: ref.text(attrEntity), Resource: ref.text(attrResource)}) // #nosec G115 -- in range
		if ref.fault != nil {
			r.fail(attrRefs, "has in element %d the attribute %s, which %s", i, ref.fault.Attribute, ref.fault.Problem)
			return nil, r.fault
		}
	}
	return refs, nil
}
