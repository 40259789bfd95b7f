package awsdb

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// answering returns a guard before an endpoint that gives the same answer to all.
func answering(t *testing.T, status int, header http.Header, body string) *Guard {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	return NewGuard(ItemsOf(client, "t"), GuardConfig{Now: time.Now, Loop: Goroutines{}})
}

// testKey is the key of an item.
func testKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: "_/SYSTEM#"},
		"SK": &types.AttributeValueMemberS{Value: "#VERSION"},
	}
}

// everyCall makes each call that the store makes, as the store makes it.
func everyCall() map[string]func(context.Context, Items) error {
	table, k := aws.String("t"), testKey()
	return map[string]func(context.Context, Items) error{
		"UpdateItem": func(ctx context.Context, c Items) error {
			_, err := c.Write(ctx, schema.NewUpdate(schema.KeyOf(k)))
			return err
		},
		"BatchGetItem": func(ctx context.Context, c Items) error {
			_, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": {Keys: []map[string]types.AttributeValue{k}}}})
			return err
		},
		"BatchWriteItem": func(ctx context.Context, c Items) error {
			_, err := c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"t": {{DeleteRequest: &types.DeleteRequest{Key: k}}}}})
			return err
		},
		"Query": func(ctx context.Context, c Items) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: table})
			return err
		},
		"DescribeTable": func(ctx context.Context, c Items) error {
			_, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
			return err
		},
		"PutItem": func(ctx context.Context, c Items) error {
			_, err := c.Write(ctx, schema.PutNew(k))
			return err
		},
		"GetItem": func(ctx context.Context, c Items) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: k})
			return err
		},
		"TransactWriteItems": func(ctx context.Context, c Items) error {
			return c.Transact(ctx, "", []*schema.ItemWrite{schema.NewPut(k)})
		},
	}
}

// A reply that DynamoDB would not give is no success, and counts as no answer of
// DynamoDB. For some calls an empty reply is right.
func TestRepliesThatProveNothing(t *testing.T) {
	t.Parallel()
	genuine := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}}
	stranger := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	html := http.Header{"Content-Type": {"text/html"}}
	bare := map[string]bool{"PutItem": true, "GetItem": true, "TransactWriteItems": true}
	for _, test := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   error
		bare   bool // calls for which an empty reply is right succeed
	}{
		{"an empty object", 200, genuine, `{}`, limiter.ErrUncertain, true},
		{"an empty body", 200, genuine, ``, limiter.ErrUncertain, false},
		{"an error as a success", 200, genuine, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed"}`, limiter.ErrUncertain, false},
		{"created", 201, genuine, `{}`, limiter.ErrUnavailable, false},
		{"no content of DynamoDB", 204, genuine, ``, limiter.ErrUnavailable, false},
		{"not modified", 304, genuine, ``, limiter.ErrUnavailable, false},
		{"no object", 200, genuine, `[]`, limiter.ErrUncertain, false},
		{"nothing", 200, genuine, `null`, limiter.ErrUncertain, false},
		{"no JSON", 200, genuine, `{]`, limiter.ErrUncertain, false},
		{"more than an object", 200, genuine, `{"x":` + strings.Repeat("[", 20_000), limiter.ErrUncertain, false},
		{"wrong types", 200, genuine, `{"Attributes":[],"Item":7,"Responses":"x","UnprocessedItems":[],"Items":{},"Table":3,"TableDescription":[],"ConsumedCapacity":7}`, limiter.ErrUncertain, false},
		{"items of wrong types", 200, genuine, `{"Attributes":{"PK":{"S":7}},"Item":{"PK":[]},"Responses":{"t":[7]},"UnprocessedItems":{"t":7},"Items":[7],"Table":{"ItemCount":"x"},"TableDescription":{"ItemCount":"x"},"ConsumedCapacity":[7],"ItemCollectionMetrics":7}`, limiter.ErrUncertain, false},
		{"a success as an error", 400, genuine, `{}`, limiter.ErrUnavailable, false},
		{"an empty error", 400, genuine, ``, limiter.ErrUnavailable, false},
		{"an error that is cut off", 400, genuine, `{"__type":"com.amazonaws.dynamodb.v20120810#Condi`, limiter.ErrUnavailable, false},
		{"an error without a code", 500, genuine, `{"message":"oops"}`, limiter.ErrUncertain, false},
		{"empty attributes", 200, genuine, `{"Attributes":{},"Responses":{}}`, limiter.ErrUncertain, true},
		{"an empty object of a stranger", 200, stranger, `{}`, limiter.ErrUnavailable, false},
		{"an empty body of a stranger", 200, stranger, ``, limiter.ErrUnavailable, false},
		{"no content", 204, html, ``, limiter.ErrUnavailable, false},
		{"a login page", 200, html, `<html>log in</html>`, limiter.ErrUnavailable, false},
		{"a redirect", 307, http.Header{"Location": {"/login"}}, ``, limiter.ErrUnavailable, false},
		{"forbidden", 403, html, `<html>no</html>`, limiter.ErrUnavailable, false},
		{"too large", 413, html, ``, limiter.ErrUnavailable, false},
		{"a gateway that waited in vain", 504, html, ``, limiter.ErrUncertain, false},
		{"cut off", 200, genuine, `{"Attributes":{"tk":{"N":`, limiter.ErrUncertain, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for op, call := range everyCall() {
				g := answering(t, test.status, test.header, test.body)
				for range outageFailures {
					err := Translate(call(t.Context(), g))
					if test.bare && bare[op] {
						if err != nil {
							t.Errorf("%s: got %v, want success", op, err)
						}
						continue
					}
					wantKinds(t, op, err, test.want)
				}
				_, err := g.breakers[0].allow(time.Now(), false)
				if opened := err != nil; opened == (test.bare && bare[op]) {
					t.Errorf("%s: the breaker is open: %t", op, opened)
				}
			}
		})
	}
}

// A put that is refused because of an item shows it.
func TestRefusalWithoutTheItem(t *testing.T) {
	t.Parallel()
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}}
	const refusal = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed"`
	for body, want := range map[string]error{refusal + `}`: limiter.ErrUncertain, refusal + `,"Item":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"},"tk":{"N":"7"}}}`: limiter.ErrConflict} {
		g := answering(t, http.StatusBadRequest, header, body)
		wantKinds(t, body, Translate(everyCall()["PutItem"](t.Context(), g)), want)
	}
	g := answering(t, http.StatusBadRequest, header, refusal+`}`)
	wantKinds(t, "an update of no item", Translate(everyCall()["UpdateItem"](t.Context(), g)), limiter.ErrConflict)
}

// A reply that never ends is read to a bound.
func TestReplyWithoutEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
		w.Header().Set("X-Amzn-Requestid", "1")
		for chunk := strings.Repeat("{", 1<<20); ; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := genuineClient{http.DefaultClient}.Do(request)
	if !errors.Is(err, errIncomplete) {
		t.Errorf("got %v, want %v", err, errIncomplete)
	}
	if response != nil {
		_ = response.Body.Close() // of a reply that is whole
	}
}

// A reply that is not as DynamoDB sent it is no outcome, also a refusal.
func TestChecksums(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		http.StatusOK:         `{"Attributes":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"},"tk":{"N":"7"}}}`,
		http.StatusBadRequest: `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed"}`,
	} {
		for sum, right := range map[string]bool{strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10): true, "12345": false, "x": false} {
			g := answering(t, status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}, checksumHeader: {sum}}, body)
			err := everyCall()["UpdateItem"](t.Context(), g)
			if wrong := errors.Is(err, errIncomplete) && errors.Is(Translate(err), limiter.ErrUncertain); wrong == right || status == http.StatusOK && right != (err == nil) {
				t.Errorf("status %d, checksum %s: %v", status, sum, err)
			}
			if got := g.WrongReplies(); (got == 0) != right {
				t.Errorf("status %d, checksum %s: %d wrong replies", status, sum, got)
			}
		}
	}
}

// noCredentials is a source of credentials that is refused itself, in the words of AWS.
type noCredentials struct{ err error }

func (n noCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, n.err
}

// Without credentials a call is not sent, and DynamoDB counts as unavailable, after
// any error of their source.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"AccessDenied", "ExpiredTokenException", "ValidationError", "InvalidIdentityToken"} {
		client := dynamodb.New(dynamodb.Options{
			Region: "local", BaseEndpoint: aws.String("http://127.0.0.1:1"), Retryer: aws.NopRetryer{},
			Credentials: markedCredentials{noCredentials{&types.ResourceNotFoundException{ErrorCodeOverride: &code}}},
		})
		cause := putOne(t.Context(), ItemsOf(client, "test"))
		err := Translate(cause)
		wantKinds(t, code, err, limiter.ErrUnavailable)
		if _, ok := errors.AsType[*credentialsError](err); !ok {
			t.Errorf("%s: %v does not say that there are no credentials", code, err)
		}
		if got := verdictOf(t.Context(), cause, time.Time{}, time.Time{}); got != rejected {
			t.Errorf("%s: verdict %d, want %d", code, got, rejected)
		}
	}
}

// The time of an answer that is not DynamoDB's says nothing of DynamoDB's clock.
func TestStrangersDoNotSetTheClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id       string
		observed bool
	}{{"", false}, {"1", true}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
			w.Header().Set("X-Amzn-Requestid", test.id)
			w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusForbidden)
		}))
		defer server.Close()
		clock := NewClock(time.Now, 0)
		client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL, Clock: clock})
		if err != nil {
			t.Fatalf("NewClient: %v", err)
		}
		if err := putOne(t.Context(), ItemsOf(client, "test")); err == nil {
			t.Error("an answer of 403 was taken for a reply")
		}
		if got := clock.State().Observed; got != test.observed {
			t.Errorf("with the id %q the clock gets the date: %t, want %t", test.id, got, test.observed)
		}
	}
}

// A client checks the reply to the creation of a table by itself.
func TestReplyToCreateTable(t *testing.T) {
	t.Parallel()
	g := answering(t, http.StatusOK, http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}}, `{}`)
	_, err := g.items.(*dynamoItems).CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: aws.String("t")})
	wantKinds(t, "CreateTable", Translate(err), limiter.ErrUncertain)
}
