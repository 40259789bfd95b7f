package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// noted notes the keys of all items that are written.
type noted struct {
	*dynamofake.DB

	mu   sync.Mutex
	keys map[[2]string]bool
}

func (n *noted) note(item map[string]types.AttributeValue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pk, _ := item["PK"].(*types.AttributeValueMemberS)
	sk, _ := item["SK"].(*types.AttributeValueMemberS)
	n.keys[[2]string{pk.Value, sk.Value}] = true
}

func (n *noted) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	n.note(in.Item)
	return n.DB.PutItem(ctx, in, o...)
}

func (n *noted) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	n.note(in.Key)
	return n.DB.UpdateItem(ctx, in, o...)
}

func (n *noted) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			n.note(w.Put.Item)
		case w.Update != nil:
			n.note(w.Update.Key)
		}
	}
	return n.DB.TransactWriteItems(ctx, in, o...)
}

func (n *noted) items(t *testing.T) (all []map[string]types.AttributeValue) {
	for k := range n.keys {
		key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: k[0]}, "SK": &types.AttributeValueMemberS{Value: k[1]}}
		out, err := n.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if out.Item != nil {
			all = append(all, out.Item)
		}
	}
	return all
}

// world is a table with a record of each kind that a decision or an operator reads, and a bucket that is used up.
func world(t *testing.T) *noted {
	t.Helper()
	n := &noted{DB: newTable(t), keys: make(map[[2]string]bool)}
	s, ctx := newStore(t, n, nil), t.Context()
	defer closing(t, s)
	limits := limitsOf(t, limiter.PerDay("l", 1000))
	budgets, err := limiter.NewBudgets(limiter.Budget{Limit: "l", Window: limiter.UsageMonth, Tokens: 5})
	put := func(ref limiter.Ref, r limiter.Record) {
		r.Limits = limits
		err = errors.Join(err, s.PutLimits(ctx, "default", ref, r))
	}
	put(limiter.ResourceLimitsRef("r"), limiter.Record{})
	put(limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny})
	put(limiter.EntityLimitsRef("e", "r"), limiter.Record{Budgets: budgets})
	for _, e := range []limiter.Entity{{ID: "p", Name: "parent"}, {ID: "e", Parent: "p", Cascade: true, Metadata: map[string]string{"a": "b"}}} {
		_, failed := s.PutEntity(ctx, t0(), "default", e)
		err = errors.Join(err, failed)
	}
	_, failed := s.Secret(ctx, "k", []byte("0123456789abcdef"))
	_, unsettled := s.Settle(ctx, t0(), limiter.Mark{Namespace: "default", ID: "m", Owner: "o", Expires: t0().Add(time.Hour)})
	var d limiter.Decision
	undecided := decider(t, s, time.Minute).Decide(ctx, t0(), asking("e", tokens(1000), limiter.Deny), &d)
	if err = errors.Join(err, failed, unsettled, undecided); err != nil || !d.Admitted {
		t.Fatal(d.Admitted, err)
	}
	return n
}

// bad are values that no program writes.
func bad() map[string]types.AttributeValue {
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	return map[string]types.AttributeValue{
		"missing": nil, "null": &types.AttributeValueMemberNULL{Value: true}, "list": &types.AttributeValueMemberL{},
		"text": &types.AttributeValueMemberS{Value: "x"}, "long": &types.AttributeValueMemberS{Value: strings.Repeat("y", 100_000)},
		"negative": number("-1"), "fraction": number("1.5"), "huge": number("1" + strings.Repeat("0", 30)), "beyond": number("18446744073709551615"),
		"map of a list": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": &types.AttributeValueMemberL{}}},
	}
}

// readAll reads all there is, and returns the error of each call that failed.
func readAll(ctx context.Context, s *dynamo.Store, client dynamo.Client) (failed []error) {
	page := limiter.Page{Size: 10}
	add := func(err error) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	for _, ref := range []limiter.Ref{limiter.EntityRef("e"), limiter.EntityRef("p"), limiter.EntityLimitsRef("e", "r"), limiter.ResourceLimitsRef("r"), limiter.SystemLimitsRef()} {
		_, err := s.Get(ctx, "default", ref)
		add(err)
		_, err = s.ListEvents(ctx, "default", limiter.AuditOf(ref), page)
		add(err)
	}
	_, err := s.ListEvents(ctx, "default", limiter.AuditFilter{}, page)
	add(err)
	_, err = s.ListEntities(ctx, "default", limiter.EntityFilter{}, page)
	add(err)
	_, err = s.ListLimits(ctx, "default", limiter.LimitsFilter{}, page)
	add(err)
	_, err = s.ListNamespaces(ctx, limiter.NamespaceFilter{}, page)
	add(err)
	_, err = s.ListDisabled(ctx, "default", page)
	add(err)
	_, err = s.ListUsage(ctx, "default", limiter.UsageFilter{}, page)
	add(err)
	_, err = s.ListOrphans(ctx, page)
	add(err)
	won, err := s.Settle(ctx, t0(), limiter.Mark{Namespace: "default", ID: "m", Owner: "another", Expires: t0().Add(time.Hour)})
	if add(err); won {
		add(errors.New("a mark was won twice"))
	}
	_, err = s.Secret(ctx, "k", []byte("0123456789abcdef"))
	add(err)
	add(dynamo.CheckTable(ctx, client, "buckets"))
	return failed
}

// With any fault in a record that was edited by hand, no call panics, and an error names the record. A bucket
// that is used up admits under no policy.
func TestRecordsEditedByHand(t *testing.T) {
	n, edits := world(t), 0
	for _, item := range n.items(t) {
		pk, sk := item["PK"].(*types.AttributeValueMemberS).Value, item["SK"].(*types.AttributeValueMemberS).Value
		if strings.Contains(pk, "/BUCKET#") {
			continue // TestCorruptItemsAdmitNobody
		}
		for attribute := range item {
			if attribute == "PK" || attribute == "SK" {
				continue
			}
			for what, value := range bad() {
				if strings.HasPrefix(attribute, "GSI") && what != "text" && what != "missing" {
					continue // DynamoDB refuses it
				}
				edits++
				if edits%editStep != 0 {
					continue
				}
				corrupt(t, n.DB, map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}, attribute, value)
				name := fmt.Sprintf("%s %s: %s is %s", pk, sk, attribute, what)
				edited(t, n.DB, name, pk)
				if _, err := n.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("buckets"), Item: item}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// edited reads a table in which the record at a key was edited.
func edited(t *testing.T, db *dynamofake.DB, name, pk string) {
	t.Helper()
	s := newStore(t, db, nil)
	defer closing(t, s)
	failed := readAll(t.Context(), s, db)
	l, err := limiter.New(limiter.Config{Store: s, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, p := range []limiter.Policy{limiter.Deny, limiter.Allow} {
		var d limiter.Decision
		if err := l.Decide(t.Context(), t0(), asking("e", tokens(1), p), &d); err != nil {
			failed = append(failed, err)
		}
		if d.Admitted {
			t.Errorf("%s: admitted under %v", name, p)
		}
	}
	_, named, _ := strings.Cut(pk, "/")
	for _, err := range failed {
		if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v; want an error that names the record", name, err)
		}
	}
}
