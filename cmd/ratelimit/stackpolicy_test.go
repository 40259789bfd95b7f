package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/stack"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/iamtest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// guarded is a table behind a proxy that passes only the calls that a policy allows.
type guarded struct {
	name       string
	direct     *dynamodb.Client
	namespaces map[string]string // ids
	url        string            // of the proxy
	client     *dynamodb.Client  // through it
	guard      *iamtest.Guard
	ofWeb      bool // the policy is of the namespace web
}

// guardTable returns a prepared table behind a policy of its stack. The policy is of the whole
// table, or of the namespace web.
func guardTable(t *testing.T, policy string, ofWeb bool) *guarded {
	t.Helper()
	server := dynamotest.Start(t)
	g := &guarded{name: dynamotest.TableName(t), direct: server.Client(t), namespaces: map[string]string{}, ofWeb: ofWeb}
	if err := dynamo.CreateTable(t.Context(), g.direct, g.name); err != nil {
		t.Fatal(err)
	}
	found, err := stack.Prepare(t.Context(), g.direct, g.name, []string{limiter.DefaultNamespace, "web", "other"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range found {
		g.namespaces[n.Name] = n.ID
	}
	template, err := stack.Render(stack.Options{Name: g.name, IAM: stack.IAM{Namespaces: found[1:2], Process: true}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := template.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if ofWeb {
		policy = logicalOf(t, string(text), policy+"web")
	}
	table := iamtest.Table{Name: g.name, ARN: "arn:aws:dynamodb:eu-central-1:123456789012:table/" + g.name, Key: "PK", Keys: map[string]string{
		"GSI1": "GSI1PK", "GSI2": "GSI2PK", "GSI3": "GSI3PK", "GSI4": "GSI4PK",
	}}
	table.Stream = table.ARN + "/stream/2026-11-22T10:00:00.000"
	p, err := iamtest.FromTemplate(text, policy, map[string]string{"Table.Arn": table.ARN, "Table.StreamArn": table.Stream})
	if err != nil {
		t.Fatal(err)
	}
	g.guard = iamtest.NewGuard(table, p)
	g.url = dynamotest.NewProxy(t, server.URL, g.guard.Plan).URL
	g.client = dynamotest.NewClient(g.url, nil)
	return g
}

// logicalOf returns the logical name that begins so.
func logicalOf(t *testing.T, template, prefix string) string {
	t.Helper()
	_, rest, found := strings.Cut(template, `"`+prefix)
	name, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("the template has no %s", prefix)
	}
	return prefix + strings.TrimSuffix(name, "Arn")
}

// wantAllowed demands that nothing was refused, and that these actions were needed.
func (g *guarded) wantAllowed(t *testing.T, actions ...string) {
	t.Helper()
	refused := g.guard.Refused()
	if g.ofWeb { // reports of replicas name entities of all namespaces, and an aggregator is one of all
		refused = slices.DeleteFunc(refused, func(line string) bool {
			return strings.Contains(line, "_/REPLICAS#") || strings.Contains(line, "_/AGGREGATORS#")
		})
	}
	if len(refused) > 0 {
		t.Errorf("refused:\n%s", strings.Join(refused, "\n"))
	}
	allowed := g.guard.Allowed()
	for _, action := range actions {
		if !slices.Contains(allowed, "dynamodb:"+action) {
			t.Errorf("%s was never asked for; got %v", action, allowed)
		}
	}
}

// replica is a configuration of a replica on the table, in a namespace.
func (g *guarded) replica(namespace, rest string) string {
	return fmt.Sprintf(`
server: {http: {refunds: true, charges: true}}
store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q}}
decision: {timeout: 10s, on_unavailable: deny}
limits: {system: {rpm: 100/minute}, entities: {"user/ada": {parent: team/a, cascade: true}}}
domains:
- domain: shop
  namespace: %s
  rules:
  - {name: settle, match: {op: settle, reservation_id: "*"}, settle: {rpm: hits}}
  - {name: reserve, match: {user: "*", op: reserve}, entity: "user/{user}", resource: api, reserve: {rpm: hits}}
  - {name: exact, match: {user: "*", exact: "*"}, entity: "user/{user}", resource: other, consume: {rpm: hits}, lease: none}
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
%s`, g.name, g.url, namespace, rest)
}

// use runs the whole work of a replica: its start, takes with and without a lease, takes
// through a parent, a reservation and its settlement. A change of limits by another replica,
// a reload and its end follow.
func (g *guarded) use(t *testing.T, namespace, rest string) {
	t.Helper()
	file := programtest.WriteFile(t, "c.yaml", g.replica(namespace, rest))
	r := start(t, "--config", file)
	for range 20 {
		if code, answer := r.ask(t, "ada"); code != http.StatusOK {
			t.Fatalf("%d: %+v", code, answer)
		}
	}
	_, reserved := r.call(t, `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ada"},{"key":"op","value":"reserve"}],"hitsAddend":"5"}]}`)
	settle := fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"op","value":"settle"},{"key":"reservation_id","value":%q}],"hitsAddend":"2"}]}`, reserved.DynamicMetadata["reservation_id"])
	if code, answer := r.call(t, settle); code != http.StatusOK || !strings.Contains(fmt.Sprint(answer.DynamicMetadata), "settled") {
		t.Errorf("settlement: %d: %+v", code, answer)
	}
	if code, answer := r.call(t, `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ada"},{"key":"exact","value":"1"}]}]}`); code != http.StatusOK {
		t.Errorf("without a lease: %d: %+v", code, answer)
	}
	admin, err := dynamo.New(g.direct, dynamo.Config{Table: g.name})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 77))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.PutLimits(t.Context(), namespace, limiter.SystemLimitsRef(), limiter.Record{Limits: limits}); err != nil {
		t.Fatal(err)
	}
	obeyed(t, "77 a minute by the table", 77, r)
	rewrite(t, file, strings.Replace(g.replica(namespace, rest), "name: users", "name: people", 1))
	eventually(t, "the reload", func() bool { return strings.Contains(r.log.String(), "configuration loaded") })
	r.stop(command.ErrInterrupted)
	if code := r.wait(t); code != command.ExitOK {
		t.Errorf("exit code %d, log:\n%s", code, r.log)
	}
	if err := admin.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A replica starts and runs with take-only. The aggregator's filters choose the right ones of
// the records that it leaves.
func TestTakeOnlyIsEnough(t *testing.T) {
	t.Parallel()
	g := guardTable(t, "TakeOnlyPolicy", false)
	g.use(t, "web", "")
	g.reshape(t, "web")
	g.wantAllowed(t, "DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem")
	g.wantFiltered(t)
}

// reshape has two replicas split a bucket under load, and merge it when it is quiet.
func (g *guarded) reshape(t *testing.T, namespace string) {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("rpm", 10_000))
	if err != nil {
		t.Fatal(err)
	}
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: namespace, Entity: "user/busy", Resource: "api"}, Limits: limits, Generation: 1,
		Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}}, Lease: limiter.LeasePolicy{None: true},
	}
	stores := make([]*dynamo.Store, 2)
	for i := range stores {
		if stores[i], err = dynamo.New(g.client, dynamo.Config{Table: g.name, ShardUnits: 5, Quiet: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a split", func() bool {
		for _, s := range stores {
			_, _ = s.Take(t.Context(), time.Now(), []limiter.Op{op}) // the proxy has noted the refusals
		}
		return stores[0].Stats().Splits+stores[1].Stats().Splits > 0
	})
	eventually(t, "a merge", func() bool { return stores[0].Stats().Merges+stores[1].Stats().Merges > 0 })
	for _, s := range stores {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// wantFiltered demands that of all records the first filter chooses the buckets, and the
// second the audit events that expire.
func (g *guarded) wantFiltered(t *testing.T) {
	t.Helper()
	out, err := g.direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &g.name})
	if err != nil {
		t.Fatal(err)
	}
	expiry := map[string]any{"type": "Service", "principalId": "dynamodb.amazonaws.com"}
	got, want, other := [2]int{}, [2]int{}, 0
	for _, item := range out.Items {
		pk, sk := item["PK"].(*types.AttributeValueMemberS).Value, item["SK"].(*types.AttributeValueMemberS).Value
		keys := map[string]any{"Keys": map[string]any{"PK": map[string]any{"S": pk}, "SK": map[string]any{"S": sk}}}
		for i, event := range []map[string]any{{"eventName": "MODIFY", "dynamodb": keys}, {"eventName": "REMOVE", "userIdentity": expiry, "dynamodb": keys}} {
			if chosen(t, stack.StreamFilters(true)[i], event) {
				got[i]++
			}
		}
		switch {
		case strings.Contains(pk, "/BUCKET#"):
			want[0]++
		case strings.Contains(pk, "/AUDIT#"):
			want[1]++
		default:
			other++
		}
		if chosen(t, stack.StreamFilters(true)[1], map[string]any{"eventName": "REMOVE", "dynamodb": keys}) {
			t.Errorf("%s: the deletion by a caller is taken for an expiry", pk)
		}
	}
	if got != want || want[0] < 3 || want[1] < 1 || other < 5 {
		t.Errorf("of buckets and audit events: chosen %v, want %v; others %d", got, want, other)
	}
}

// chosen reports whether a filter of Lambda chooses an event. It supports values and
// prefixes.
func chosen(t *testing.T, filter string, event map[string]any) bool {
	t.Helper()
	var pattern map[string]any
	if err := json.Unmarshal([]byte(filter), &pattern); err != nil {
		t.Fatal(err)
	}
	var matches func(pattern, value any) bool
	matches = func(pattern, value any) bool {
		switch p := pattern.(type) {
		case map[string]any:
			object, ok := value.(map[string]any)
			for key := range p {
				ok = ok && matches(p[key], object[key])
			}
			return ok
		case []any:
			return slices.ContainsFunc(p, func(one any) bool {
				if rule, ok := one.(map[string]any); ok {
					text, is := value.(string)
					return is && strings.HasPrefix(text, rule["prefix"].(string))
				}
				return one == value
			})
		default:
			return false
		}
	}
	return matches(pattern, event)
}

// A replica of one namespace starts and runs with take-only for it, and keys of its own for
// reservations.
func TestTakeOnlyOfANamespaceIsEnough(t *testing.T) {
	g := guardTable(t, "TakeOnlyPolicy", true)
	g.use(t, "web", "reservation: {keys: ["+base64.StdEncoding.EncodeToString(make([]byte, 32))+"]}\n")
	g.wantAllowed(t, "DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem")
}

// A replica with full starts on a table that nothing has prepared, and stores limits.
func TestFullIsEnough(t *testing.T) {
	for _, ofWeb := range []bool{false, true} {
		g := guardTable(t, "FullPolicy", ofWeb)
		namespace := "new"
		if ofWeb {
			namespace = "web"
		}
		store, err := dynamo.New(g.client, dynamo.Config{Table: g.name, PurgeWait: -1})
		if err != nil {
			t.Fatal(err)
		}
		g.administer(t, store, namespace)
		g.wantAllowed(t, "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")
		if err := store.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// administer stores, reads and deletes entities and limits, and purges the namespace.
func (g *guarded) administer(t *testing.T, store *dynamo.Store, namespace string) {
	t.Helper()
	ctx := t.Context()
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 5))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.PutEntity(ctx, time.Now(), namespace, limiter.Entity{ID: "user/ada", Parent: "team/a"})
	err = errors.Join(err, store.PutLimits(ctx, namespace, limiter.SystemLimitsRef(), limiter.Record{Limits: limits}))
	err = errors.Join(err, store.DeleteEntity(ctx, namespace, "user/ada"))
	children, failed := store.ListEntities(ctx, namespace, limiter.EntityFilter{Parent: "team/a"}, limiter.Page{})
	err = errors.Join(err, failed)
	for _, child := range children.Items {
		err = errors.Join(err, fmt.Errorf("a child is left: %s", child.Ref.Entity))
	}
	_, failed = store.ListLimits(ctx, namespace, limiter.LimitsFilter{}, limiter.Page{})
	err = errors.Join(err, failed)
	_, failed = store.ListEvents(ctx, namespace, limiter.AuditOf(limiter.EntityRef("user/ada")), limiter.Page{})
	err = errors.Join(err, failed)
	_, failed = store.ListEvents(ctx, namespace, limiter.AuditFilter{}, limiter.Page{})
	err = errors.Join(err, failed)
	_, failed = store.Edit(ctx, time.Now(), namespace, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace})
	if err := errors.Join(err, failed, store.Purge(ctx, time.Now(), namespace, func(int) {})); err != nil {
		t.Errorf("%s: %v", namespace, err)
	}
}

// A policy must not allow these calls of the API.
func TestPoliciesRefuse(t *testing.T) {
	for _, test := range []struct {
		policy string
		ofWeb  bool
		calls  map[string]bool // of refusals; false = it is allowed
	}{
		{"TakeOnlyPolicy", false, map[string]bool{
			"put a bucket of web": false, "put a bucket of other": false, "put the reservation key": false, "raise web's configuration": false, "raise other's configuration": false,
			"raise the table's generation": true, "raise the generation beside web's configuration": true, "put limits of web": true, "raise web's generation": true, "put an entity of web": true, "delete a bucket of web": true, "read an audit of web": true,
			"read the reservation key": true, "put the version": true, "change the version": true, "register a namespace": true, "query an index of web": true, "scan": true, "write a batch of web": true, "delete the table": true,
			"put a report": false, "read the reports": false, "read the reports of aggregators": false, "put the report of an aggregator": true,
		}},
		{"TakeOnlyPolicy", true, map[string]bool{
			"put a report": true, "read the reports": true, "read the reports of aggregators": true, "put the report of an aggregator": true,
			"put a bucket of web": false, "read limits of web": false, "raise web's configuration": false, "read web's configuration": false,
			"raise other's configuration": true, "raise the table's generation": true, "raise the generation beside web's configuration": true, "read other's configuration": true,
			"put a bucket of other": true, "read limits of other": true, "raise other's generation": true, "put the reservation key": true, "read the reservation key": true,
			"put limits of web": true, "put the version": true, "register a namespace": true, "scan": true,
		}},
		{"FullPolicy", false, map[string]bool{
			"put limits of web": false, "put the reservation key": false, "query an index of web": false, "register a namespace": false, "write a batch of web": false,
			"scan": true, "delete the table": true,
		}},
		{"FullPolicy", true, map[string]bool{
			"put limits of web": false, "raise web's generation": false, "raise web's configuration": false, "query an index of web": false, "delete a bucket of web": false,
			"raise other's configuration": true, "raise the table's generation": true,
			"put limits of other": true, "raise other's generation": true, "query an index of other": true, "put the reservation key": true, "read the reservation key": true, "put the version": true, "scan": true,
		}},
		{"ReadOnlyPolicy", false, map[string]bool{
			"read limits of web": false, "read limits of other": false, "read an audit of web": false, "query an index of web": false,
			"put a bucket of web": true, "put limits of web": true, "read the reservation key": true, "raise the table's generation": true, "scan": true,
		}},
		{"AggregatePolicy", false, map[string]bool{
			"write usage of web": false, "read limits of web in a batch": false, "put a lease of the stream": false, "query names of namespaces": false,
			"read limits of web": true, "put a bucket of web": false, "read a bucket of web": false, "put limits of web": true, "raise web's configuration": true, "raise web's generation": true,
			"read the reservation key": true, "put the reservation key": true, "put the version": true, "register a namespace": true, "query an index of web": true,
			"delete a bucket of web": true, "write a batch of web": true, "read an audit of web": true, "scan": true, "delete the table": true,
			"put the report of an aggregator": false, "read the reports of aggregators": true, "put a report": true,
		}},
		{"ReadOnlyPolicy", true, map[string]bool{
			"read limits of web": false, "query an index of web": false,
			"read limits of other": true, "query an index of other": true, "read the reservation key": true, "put limits of web": true,
		}},
	} {
		t.Run(fmt.Sprint(test.policy, " of web: ", test.ofWeb), func(t *testing.T) {
			g := guardTable(t, test.policy, test.ofWeb)
			calls := g.calls(t.Context())
			for name, refused := range test.calls {
				call, known := calls[name]
				if !known {
					t.Fatalf("there is no call %q", name)
				}
				err := call(g.client)
				if got := err != nil && strings.Contains(err.Error(), "AccessDeniedException"); got != refused || !refused && err != nil {
					t.Errorf("%s: refused %v, want %v: %v", name, got, refused, err)
				}
			}
		})
	}
}

// calls are calls of the API by their effect.
func (g *guarded) calls(ctx context.Context) map[string]func(*dynamodb.Client) error {
	s := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	key := func(pk, sk string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"PK": s(pk), "SK": s(sk)}
	}
	put := func(pk, sk string) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: &g.name, Item: key(pk, sk)})
			return err
		}
	}
	get := func(pk, sk string) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &g.name, Key: key(pk, sk)})
			return err
		}
	}
	raise := func(pk, sk, attribute string) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &g.name, Key: key(pk, sk), UpdateExpression: aws.String("ADD #g :one"), ExpressionAttributeNames: map[string]string{"#g": attribute},
				ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
			})
			return err
		}
	}
	query := func(pk string) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{
				TableName: &g.name, IndexName: aws.String("GSI4"), KeyConditionExpression: aws.String("GSI4PK = :k"), ExpressionAttributeValues: map[string]types.AttributeValue{":k": s(pk)},
			})
			return err
		}
	}
	list := func(pk string) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: &g.name, KeyConditionExpression: aws.String("PK = :k"), ExpressionAttributeValues: map[string]types.AttributeValue{":k": s(pk)}})
			return err
		}
	}
	web, other := g.namespaces["web"], g.namespaces["other"]
	return map[string]func(*dynamodb.Client) error{
		"put a bucket of web": put(web+"/BUCKET#a#b#0", "#STATE"), "put a bucket of other": put(other+"/BUCKET#a#b#0", "#STATE"),
		"put limits of web": put(web+"/SYSTEM#", "#CONFIG"), "put limits of other": put(other+"/SYSTEM#", "#CONFIG"),
		"put an entity of web": put(web+"/ENTITY#a", "#META"), "put the version": put("_/SYSTEM#", "#VERSION"),
		"register a namespace": put("_/SYSTEM#", "#NAMESPACE#x"), "put the reservation key": put("_/SECRET#reservation-key", "#SECRET"),
		"put a report": put("_/REPLICAS#", "#REPLICA#a"), "read the reports": list("_/REPLICAS#"),
		"put the report of an aggregator": put("_/AGGREGATORS#", "#AGGREGATOR#a"), "read the reports of aggregators": list("_/AGGREGATORS#"),
		"read limits of web": get(web+"/SYSTEM#", "#CONFIG"), "read limits of other": get(other+"/SYSTEM#", "#CONFIG"),
		"read an audit of web": get(web+"/AUDIT#a", "#AUDIT#x"), "read the reservation key": get("_/SECRET#reservation-key", "#SECRET"),
		"raise web's generation": raise(web+"/SYSTEM#", "#GENERATION", "generation"), "raise other's generation": raise(other+"/SYSTEM#", "#GENERATION", "generation"),
		"raise web's configuration": raise(web+"/CONFIGURATION#", "#GENERATION", "configuration"), "raise other's configuration": raise(other+"/CONFIGURATION#", "#GENERATION", "configuration"),
		"read web's configuration": get(web+"/CONFIGURATION#", "#GENERATION"), "read other's configuration": get(other+"/CONFIGURATION#", "#GENERATION"),
		"raise the generation beside web's configuration": raise(web+"/CONFIGURATION#", "#GENERATION", "generation"),
		"raise the table's generation":                    raise("_/SYSTEM#", "#GENERATION", "generation"), "change the version": raise("_/SYSTEM#", "#VERSION", "schema_version"),
		"query an index of web": query(web + "#3"), "query an index of other": query(other + "#3"),
		"write usage of web": raise(web+"/ENTITY#a", "#USAGE#b#month#2026-11", "total"), "put a lease of the stream": put("_/STREAM#x", "#LEASE#shard"),
		"read a bucket of web": get(web+"/BUCKET#a#b#0", "#STATE"),
		"read limits of web in a batch": func(c *dynamodb.Client) error {
			_, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				g.name: {Keys: []map[string]types.AttributeValue{key(web+"/SYSTEM#", "#CONFIG"), key(web+"/RESOURCE#a", "#CONFIG"), key(web+"/ENTITY#a", "#CONFIG#b")}},
			}})
			return err
		},
		"query names of namespaces": list("_/SYSTEM#"),
		"delete a bucket of web": func(c *dynamodb.Client) error {
			_, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &g.name, Key: key(web+"/BUCKET#a#b#0", "#STATE")})
			return err
		},
		"write a batch of web": func(c *dynamodb.Client) error {
			_, err := c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
				g.name: {{DeleteRequest: &types.DeleteRequest{Key: key(web+"/BUCKET#a#b#0", "#STATE")}}},
			}})
			return err
		},
		"scan": func(c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: &g.name})
			return err
		},
		"delete the table": func(c *dynamodb.Client) error {
			_, err := c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &g.name})
			return err
		},
	}
}

// A replica with the policy of a namespace whose rules name another says which at its start.
func TestTakeOnlyNamesTheNamespaceItLacks(t *testing.T) {
	g := guardTable(t, "TakeOnlyPolicy", true)
	s, err := openReplica(t.Context(), programtest.Parsed(t, g.replica("other", "")), g.client, new(proctest.LogBuffer))
	if err == nil {
		s.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), `opening namespace "other": `) || !strings.Contains(err.Error(), "denies access") {
		t.Errorf("got %v, want the namespace and the reason", err)
	}
}
