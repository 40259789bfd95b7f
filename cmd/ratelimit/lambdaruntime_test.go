package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// lambdaRuntime is the API of the runtime of Lambda, for one function. A call is sent when the
// function asks for the next one.
type lambdaRuntime struct {
	events  chan string
	answers chan lambdaAnswer
	log     *proctest.LogBuffer
	out     *proctest.LogBuffer
}

// lambdaAnswer is the outcome of a call of the function.
type lambdaAnswer struct {
	failed bool
	body   string
}

func (l *lambdaRuntime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime/")
	switch {
	case r.Method == http.MethodGet && path == "invocation/next":
		select {
		case event := <-l.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:ratelimit")
			_, _ = io.WriteString(w, event)
		case <-r.Context().Done():
		}
	case r.Method == http.MethodPost && strings.HasPrefix(path, "invocation/"):
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		l.answers <- lambdaAnswer{strings.HasSuffix(path, "/error"), string(body)}
	default:
		http.NotFound(w, r)
	}
}

// bootstrap builds the program with the tag that the archive of a function has.
func bootstrap(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o", path, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// startLambda starts a program as the runtime of Lambda does, with the variables of a function.
func startLambda(t *testing.T, program string, variables map[string]string) *lambdaRuntime {
	t.Helper()
	l := &lambdaRuntime{events: make(chan string), answers: make(chan lambdaAnswer), log: new(proctest.LogBuffer), out: new(proctest.LogBuffer)}
	api := httptest.NewServer(l)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(api.URL, "http://"), "AWS_REGION=eu-central-1",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
	}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = l.out, l.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		api.Close()
		if t.Failed() {
			t.Logf("log of the function:\n%s%s", l.log, l.out)
		}
	})
	return l
}

// call has the function process an event.
func (l *lambdaRuntime) call(t *testing.T, event any) lambdaAnswer {
	t.Helper()
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	timeout := time.After(patience)
	select {
	case l.events <- string(text):
	case <-timeout:
		t.Fatalf("the function asks for no call\n%s", l.log)
	}
	select {
	case answer := <-l.answers:
		return answer
	case <-timeout:
		t.Fatalf("the function gives no answer\n%s", l.log)
	}
	return lambdaAnswer{}
}

// failures has the function process records of a shard, and returns which it reports as failed.
func (l *lambdaRuntime) failures(t *testing.T, shard string, records []json.RawMessage) []string {
	t.Helper()
	answer := l.call(t, map[string]any{
		"Records": records, "shardId": shard, "state": map[string]string{}, "isFinalInvokeForWindow": false,
		"window": map[string]string{"start": "2026-11-22T10:00:00Z", "end": "2026-11-22T10:15:00Z"},
	})
	var response awscmd.LambdaResponse
	if err := json.Unmarshal([]byte(answer.body), &response); err != nil || answer.failed || response.State == nil {
		t.Fatalf("%+v, %v", answer, err)
	}
	failed := make([]string, len(response.BatchItemFailures))
	for i, f := range response.BatchItemFailures {
		failed[i] = f.ItemIdentifier
	}
	return failed
}

// streamOf returns the records of a table's stream as a call of Lambda has them, and their shard.
func streamOf(t *testing.T, server *dynamotest.Server, table string) (shard string, records []json.RawMessage) {
	t.Helper()
	client, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := dynamo.OpenStream(t.Context(), server.Client(t), client, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := stream.Shards(t.Context())
	if err != nil || len(shards) != 1 {
		t.Fatalf("shards %v, %v", shards, err)
	}
	iterator, err := stream.Open(t.Context(), shards[0].ID, "")
	for err == nil {
		var out *dynamodbstreams.GetRecordsOutput
		if out, err = client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator}); err != nil {
			break
		}
		for i := range out.Records {
			records = append(records, lambdaRecord(t, &out.Records[i]))
		}
		if len(out.Records) == 0 || out.NextShardIterator == nil {
			return shards[0].ID, records
		}
		iterator = *out.NextShardIterator
	}
	t.Fatal(err)
	return "", nil
}

// lambdaRecord returns a record in the form of Lambda.
func lambdaRecord(t *testing.T, r *types.Record) json.RawMessage {
	t.Helper()
	change := map[string]any{
		"SequenceNumber": r.Dynamodb.SequenceNumber, "Keys": lambdaAttributes(r.Dynamodb.Keys), "StreamViewType": r.Dynamodb.StreamViewType,
		"ApproximateCreationDateTime": r.Dynamodb.ApproximateCreationDateTime.Unix(), "SizeBytes": r.Dynamodb.SizeBytes,
	}
	for name, image := range map[string]map[string]types.AttributeValue{"OldImage": r.Dynamodb.OldImage, "NewImage": r.Dynamodb.NewImage} {
		if image != nil {
			change[name] = lambdaAttributes(image)
		}
	}
	text, err := json.Marshal(map[string]any{"eventID": r.EventID, "eventName": r.EventName, "eventSource": "aws:dynamodb", "dynamodb": change})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func lambdaAttributes(from map[string]types.AttributeValue) map[string]any {
	to := map[string]any{}
	for name, v := range from {
		to[name] = lambdaAttribute(v)
	}
	return to
}

func lambdaAttribute(v types.AttributeValue) map[string]any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": lambdaAttributes(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i := range v.Value {
			list[i] = lambdaAttribute(v.Value[i])
		}
		return map[string]any{"L": list}
	}
	return map[string]any{"NULL": true}
}
