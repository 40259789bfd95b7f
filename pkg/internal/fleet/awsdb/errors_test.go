package awsdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// allKinds are the errors of the contract, and that of refused access.
func allKinds() []error {
	return []error{limiter.ErrInvalid, limiter.ErrUnavailable, limiter.ErrUncertain, limiter.ErrConflict, limiter.ErrClosed, ErrDenied}
}

// wantKinds requires that err is of these kinds and of no other.
func wantKinds(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	for _, kind := range allKinds() {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == kind //nolint:errorlint // which of the kinds it is
		}
		if errors.Is(err, kind) != wanted {
			t.Errorf("%s: error %v is %q = %t, want %t", what, err, kind, !wanted, wanted)
		}
	}
}

func TestTranslate(t *testing.T) {
	denied := []error{limiter.ErrInvalid, ErrDenied}
	send := func(err error) error { return &smithyhttp.RequestSendError{Err: err} }
	reasons := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, c := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(c)})
		}
		return e
	}
	for _, test := range []struct {
		err  error
		want []error
	}{
		{&types.ConditionalCheckFailedException{}, []error{limiter.ErrConflict}},
		{&types.ProvisionedThroughputExceededException{}, []error{limiter.ErrUnavailable}},
		{&types.RequestLimitExceeded{}, []error{limiter.ErrUnavailable}},
		{&types.ThrottlingException{}, []error{limiter.ErrUnavailable}},
		{&types.LimitExceededException{}, []error{limiter.ErrUnavailable}},
		{&types.TransactionConflictException{}, []error{limiter.ErrUnavailable}},
		{&types.TransactionInProgressException{}, []error{limiter.ErrUncertain}},
		{&types.InternalServerError{}, []error{limiter.ErrUncertain}},
		{&types.ReplicatedWriteConflictException{}, []error{limiter.ErrUncertain}},
		{&types.ResourceNotFoundException{}, []error{limiter.ErrUnavailable}},
		{&types.IdempotentParameterMismatchException{}, []error{limiter.ErrInvalid}},
		{&types.ItemCollectionSizeLimitExceededException{}, []error{limiter.ErrUnavailable}},
		{reasons("None", "ConditionalCheckFailed"), []error{limiter.ErrConflict}},
		{reasons("TransactionConflict", "None"), []error{limiter.ErrUnavailable}},
		{reasons("ThrottlingError"), []error{limiter.ErrUnavailable}},
		{reasons("ProvisionedThroughputExceeded", "ConditionalCheckFailed"), []error{limiter.ErrConflict}},
		{reasons("ConditionalCheckFailed", "ValidationError"), []error{limiter.ErrInvalid}},
		{reasons("ItemCollectionSizeLimitExceeded"), []error{limiter.ErrUnavailable}},
		{reasons("SomethingNew", "None"), []error{limiter.ErrUnavailable}},
		{reasons("SomethingNew", "ConditionalCheckFailed"), []error{limiter.ErrConflict}},
		{reasons("None", "SomethingNew", "AccessDenied"), denied},
		{reasons("AccessDenied"), denied},
		{&smithy.GenericAPIError{Code: "ValidationException"}, []error{limiter.ErrInvalid}},
		{&smithy.GenericAPIError{Code: "AccessDeniedException"}, denied},
		{&credentialsError{&smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRole", Err: &smithy.GenericAPIError{Code: "AccessDenied"}}}, []error{limiter.ErrUnavailable}},
		{&credentialsError{&smithy.GenericAPIError{Code: "ValidationError"}}, []error{limiter.ErrUnavailable}},
		{send(&strangerError{status: 200}), []error{limiter.ErrUnavailable}},
		{send(&strangerError{status: 302}), []error{limiter.ErrUnavailable}},
		{send(&strangerError{status: 403}), []error{limiter.ErrUnavailable}},
		{send(&strangerError{status: 504}), []error{limiter.ErrUncertain}},
		{incomplete("UpdateItem", "Attributes"), []error{limiter.ErrUncertain}},
		{&smithy.GenericAPIError{Code: "ServiceUnavailable"}, []error{limiter.ErrUncertain}},
		{&smithy.GenericAPIError{Code: "SomethingNew"}, []error{limiter.ErrUncertain}},
		{&smithy.CanceledError{Err: context.DeadlineExceeded}, []error{limiter.ErrUncertain}},
		{send(context.DeadlineExceeded), []error{limiter.ErrUncertain}},
		{send(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), []error{limiter.ErrUncertain}},
		{send(&net.OpError{Op: "write", Err: syscall.EPIPE}), []error{limiter.ErrUncertain}},
		{send(io.ErrUnexpectedEOF), []error{limiter.ErrUncertain}},
		{send(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), []error{limiter.ErrUnavailable}},
		{send(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}), []error{limiter.ErrUnavailable}},
		{&notSentError{&smithy.CanceledError{Err: context.Canceled}}, []error{limiter.ErrUnavailable}},
		{&notSentError{&smithy.SerializationError{Err: errors.New("x")}}, []error{limiter.ErrInvalid}},
		{smithy.InvalidParamsError{Context: "x"}, []error{limiter.ErrInvalid}},
		{&smithy.DeserializationError{Err: io.ErrUnexpectedEOF}, []error{limiter.ErrUncertain}},
		{fmt.Errorf("%w: known already", limiter.ErrClosed), []error{limiter.ErrClosed}},
	} {
		what := fmt.Sprintf("%T %v", test.err, test.err)
		wrapped := &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: test.err}
		got := Translate(wrapped)
		wantKinds(t, what, got, test.want...)
		if !errors.Is(got, wrapped) {
			t.Errorf("%s: the SDK's error is out of reach in %v", what, got)
		}
		if test.want[0] == limiter.ErrUncertain { //nolint:errorlint // which of the kinds it is
			test.want[0] = limiter.ErrUnavailable
		}
		wantKinds(t, "read: "+what, TranslateRead(wrapped), test.want...)
	}
	if Translate(nil) != nil || TranslateRead(nil) != nil {
		t.Error("no error became one")
	}
}

// TestClassOfCode: every code of the table, and the treatment of a call that ends in
// it. It covers whether a policy may admit, whether the same call is sent again, and
// the breaker's conclusion about DynamoDB.
func TestClassOfCode(t *testing.T) {
	for _, test := range []struct {
		class     class
		kind      error
		verdict   verdict
		retryable bool
		codes     string
	}{
		{conflict, limiter.ErrConflict, answered, false, "ConditionalCheckFailedException ConditionalCheckFailed"},
		{contended, limiter.ErrUnavailable, answered, true, "TransactionConflictException TransactionConflict"},
		{throttled, limiter.ErrUnavailable, busy, true, `ProvisionedThroughputExceededException ProvisionedThroughputExceeded ThrottlingException
			ThrottlingError Throttling ThrottledException RequestLimitExceeded RequestThrottled RequestThrottledException TooManyRequestsException
			LimitExceededException SlowDown BandwidthLimitExceeded`},
		{refused, limiter.ErrUnavailable, rejected, false, `UnrecognizedClientException InvalidClientTokenId InvalidSignatureException
			SignatureDoesNotMatch IncompleteSignature IncompleteSignatureException MissingAuthenticationToken MissingAuthenticationTokenException
			ExpiredToken ExpiredTokenException RequestExpired RequestTimeTooSkewed OptInRequired AuthFailure
			InaccessibleEncryptionCredentialsException KMSAccessDenied KMSAccessDeniedException KMSDisabledException KMSInvalidStateException KMSNotFoundException
			ResourceNotFoundException TableNotFoundException ResourceInUseException TableInUseException IndexNotFoundException
			ItemCollectionSizeLimitExceededException ItemCollectionSizeLimitExceeded UnknownOperationException InvalidAction InvalidEndpointException
			SomethingNewException Forbidden`},
		{failed, limiter.ErrUncertain, down, false, `InternalServerError InternalFailure InternalServerErrorException ServiceUnavailable
			ServiceUnavailableException RequestTimeout RequestTimeoutException TransactionInProgressException ReplicatedWriteConflictException`},
		{denied, ErrDenied, answered, false, "AccessDenied AccessDeniedException NotAuthorized UnauthorizedOperation"},
		{wrong, limiter.ErrInvalid, answered, false, `ValidationException ValidationError SerializationException IdempotentParameterMismatchException
			DuplicateItemException DuplicateItem MissingParameter MissingAction InvalidParameterValue InvalidParameterCombination MalformedQueryString`},
	} {
		for code := range strings.FieldsSeq(test.codes) {
			err := fmt.Errorf("wrapped: %w", &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}}, Err: &smithy.GenericAPIError{Code: code},
			})
			if got := classOf(err); got != test.class {
				t.Errorf("%s: class %d, want %d", code, got, test.class)
			}
			if got := Translate(err); !errors.Is(got, test.kind) || errors.Is(got, limiter.ErrInvalid) != (test.class == denied || test.class == wrong) {
				t.Errorf("%s: translated to %v, want %v", code, got, test.kind)
			}
			if got := verdictOf(t.Context(), err, time.Time{}, time.Time{}); got != test.verdict {
				t.Errorf("%s: verdict %d, want %d", code, got, test.verdict)
			}
			if got := Retryable(err); got != test.retryable {
				t.Errorf("%s: sent again is %t, want %t", code, got, test.retryable)
			}
		}
	}
}

// TestTranslateNoConnection: a request that reaches no server was not applied,
// through the SDK's client.
func TestTranslateNoConnection(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: "http://" + listener.Addr().String()})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	wantKinds(t, "nobody listens", Translate(putOne(t.Context(), ItemsOf(client, "test"))), limiter.ErrUnavailable)
}

// TestTranslateAnswers: errors as DynamoDB writes them, through the SDK's client.
func TestTranslateAnswers(t *testing.T) {
	const prefix = `{"__type":"com.amazonaws.dynamodb.v20120810#`
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !strings.Contains(body, "<html>") {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.Header().Set("X-Amzn-Requestid", "1")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
	}))
	defer server.Close()
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	for _, test := range []struct {
		status int
		body   string
		want   []error
	}{
		{400, prefix + `ConditionalCheckFailedException","message":"The conditional request failed"}`, []error{limiter.ErrConflict}},
		{400, prefix + `ProvisionedThroughputExceededException","message":"slow"}`, []error{limiter.ErrUnavailable}},
		{400, prefix + `RequestLimitExceeded","message":"slow"}`, []error{limiter.ErrUnavailable}},
		{400, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"slow"}`, []error{limiter.ErrUnavailable}},
		{400, prefix + `TransactionConflictException","message":"ongoing"}`, []error{limiter.ErrUnavailable}},
		{400, prefix + `ResourceNotFoundException","message":"no table"}`, []error{limiter.ErrUnavailable}},
		{400, `{"__type":"com.amazon.coral.validate#ValidationException","message":"bad"}`, []error{limiter.ErrInvalid}},
		{400, `{"__type":"com.amazon.coral.service#SerializationException"}`, []error{limiter.ErrInvalid}},
		{400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}`, []error{limiter.ErrInvalid, ErrDenied}},
		{400, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"token"}`, []error{limiter.ErrUnavailable}},
		{403, ``, []error{limiter.ErrUnavailable}},
		{403, `<html>a proxy</html>`, []error{limiter.ErrUnavailable}},
		{302, `<html>a portal</html>`, []error{limiter.ErrUnavailable}},
		{400, `{"__type":"SomethingNewException","message":"?"}`, []error{limiter.ErrUnavailable}},
		{400, `<html>a proxy</html>`, []error{limiter.ErrUnavailable}},
		{413, ``, []error{limiter.ErrUnavailable}},
		{413, `<html>a proxy</html>`, []error{limiter.ErrUnavailable}},
		{429, `<html>a proxy</html>`, []error{limiter.ErrUnavailable}},
		{408, `<html>a proxy</html>`, []error{limiter.ErrUncertain}},
		{429, ``, []error{limiter.ErrUnavailable}},
		{408, ``, []error{limiter.ErrUncertain}},
		{500, prefix + `InternalServerError","message":"oops"}`, []error{limiter.ErrUncertain}},
		{500, ``, []error{limiter.ErrUncertain}},
		{502, `<html>a proxy</html>`, []error{limiter.ErrUncertain}},
		{503, `{"__type":"ServiceUnavailable"}`, []error{limiter.ErrUncertain}},
		{200, `<html>a portal</html>`, []error{limiter.ErrUnavailable}},
		{200, `<html>a portal</html>` + strings.Repeat("x", 1<<20), []error{limiter.ErrUnavailable}},
		{200, `{"Attributes":{"tk":{"N":`, []error{limiter.ErrUncertain}},
	} {
		status, body = test.status, test.body
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: testKey()})
		wantKinds(t, fmt.Sprintf("%d %s", test.status, test.body), Translate(err), test.want...)
	}
}

// TestReasonsAndItems: the item that a condition was not true of stays in reach.
func TestReasonsAndItems(t *testing.T) {
	bodies := map[string]string{
		"UpdateItem": `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed","Item":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"},"tk":{"N":"7"}}}`,
		"TransactWriteItems": `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[
			{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"failed","Item":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"},"tk":{"N":"8"}}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		w.Header().Set("X-Amzn-Requestid", "1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, bodies[op]) // the client may have gone
	}))
	defer server.Close()
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: testKey()})
	item, failed := ConditionItem(Translate(err))
	if n, ok := item["tk"].(*types.AttributeValueMemberN); !failed || !ok || n.Value != "7" {
		t.Errorf("item %v, failed = %t, of %v", item, failed, err)
	}
	put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: testKey()}}
	_, err = client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put, put}})
	for i, want := range []string{"None", ConditionFailed, ""} {
		code, item := ReasonAt(Translate(err), i)
		if code != want || (item != nil) != (want == ConditionFailed) {
			t.Errorf("reason %d is %q with item %v, want %q", i, code, item, want)
		}
	}
	if item, failed := ConditionItem(Translate(err)); failed {
		t.Errorf("a transaction's error was taken for that of a write of %v", item)
	}
}

// TestWhatWasSent: a request that was canceled before it was sent was not applied.
// One that was canceled after has an unknown outcome.
func TestWhatWasSent(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
		arrived <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	client, err := NewClient(t.Context(), ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	call := func(ctx context.Context) error {
		_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: testKey()})
		return Translate(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = call(ctx)
	wantKinds(t, "canceled before", err, limiter.ErrUnavailable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap the context's", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	err = call(ctx)
	wantKinds(t, "canceled after", err, limiter.ErrUncertain)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap the context's", err)
	}
	_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{})
	wantKinds(t, "without a table", Translate(err), limiter.ErrInvalid)
}
