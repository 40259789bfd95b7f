package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// newBucket makes a bucket of moto, and returns a client of it. The environment names moto as S3.
func newBucket(t *testing.T, moto, name string) *s3.Client {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL_S3", moto)
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle, o.DisableLogOutputChecksumValidationSkipped = true, true })
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: &name, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(cfg.Region)},
	}); err != nil {
		t.Fatal(err)
	}
	return client
}

// archived returns the lines of all objects of the bucket audit-events in order, and the names of the objects.
func archived(t *testing.T, client *s3.Client) (lines, names []string) {
	t.Helper()
	bucket := "audit-events"
	list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Contents {
		names = append(names, *o.Key)
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(out.Body)
		if err != nil {
			t.Fatalf("%s: %v", *o.Key, err)
		}
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			lines = append(lines, scanner.Text())
		}
	}
	return lines, names
}

// audited is a table with audit events, and a service on it.
type audited struct {
	server  *dynamotest.Server
	table   string
	service *running
	want    []api.AuditEvent // as the service lists them, the oldest first
}

func newAudited(t *testing.T) *audited {
	t.Helper()
	a := &audited{server: dynamotest.Start(t), table: dynamotest.TableName(t)}
	a.service = start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(a.server.URL, a.table, "100/minute")))
	for _, args := range [][]string{
		{"set", "limits", "--resource", "gpt-4", "rpm=60/minute", "--allow-new"},
		{"set", "limits", "--resource", "gpt-4", "rpm=90/minute", "tpd=5/day", "--allow-new"},
		{"delete", "limits", "--resource", "gpt-4", "--yes"},
	} {
		if code, _, stderr := output(t, append(args, "--server", a.service.adminURL(t))...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
	}
	code, list, stderr := output(t, "list", "audit", "$RESOURCE:gpt-4", "-o", "json", "--server", a.service.adminURL(t))
	var events struct {
		Items []api.AuditEvent `json:"items"`
	}
	if err := json.Unmarshal([]byte(list), &events); err != nil || code != 0 || len(events.Items) != 3 {
		t.Fatalf("%d %v: %s%s", code, err, list, stderr)
	}
	a.want = events.Items
	slices.Reverse(a.want)
	return a
}

// wantArchived demands that the lines are the events.
func (a *audited) wantArchived(t *testing.T, lines, names []string) {
	t.Helper()
	if len(names) == 0 {
		t.Error("there is no object")
	}
	for _, name := range names {
		if prefix := "audit/" + a.want[0].Time.Format("year=2006/month=01/day=02/"); !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, ".jsonl.gz") {
			t.Errorf("the object %s is not below %s", name, prefix)
		}
	}
	got := make([]api.AuditEvent, 0, len(lines))
	for _, line := range lines {
		var l command.AuditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.NamespaceID) != 11 {
			t.Errorf("%s: %v", line, err)
		}
		got = append(got, l.AuditEvent)
	}
	compact := cmp.Transformer("compact", func(m json.RawMessage) (v any) { _ = json.Unmarshal(m, &v); return v })
	if diff := cmp.Diff(a.want, got, compact); diff != "" {
		t.Errorf("events (-listed +archived):\n%s", diff)
	}
}

// expiring returns a proxy of the table's stream where removals of audit events have the form that
// expiry has with AWS. DynamoDB Local does not report the remover of an item.
func (a *audited) expiring(t *testing.T) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := http.NewRequestWithContext(r.Context(), r.Method, a.server.URL+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		in.Header = r.Header.Clone()
		out, err := http.DefaultClient.Do(in)
		if err != nil {
			return // the program has gone
		}
		defer func() { _ = out.Body.Close() }()
		body, err := io.ReadAll(out.Body)
		if err != nil {
			return
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetRecords") {
			body = withExpiry(t, body)
		}
		for _, name := range []string{"Content-Type", "X-Amzn-Requestid"} {
			w.Header().Set(name, out.Header.Get(name))
		}
		w.WriteHeader(out.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// withExpiry says of removals of audit events in an answer of GetRecords that DynamoDB made them.
func withExpiry(t *testing.T, body []byte) []byte {
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Error(err)
		return body
	}
	records, _ := answer["Records"].([]any)
	for _, r := range records {
		record, _ := r.(map[string]any)
		if text, _ := json.Marshal(record["dynamodb"]); record["eventName"] == "REMOVE" && strings.Contains(string(text), `"#AUDIT#`) {
			record["userIdentity"] = map[string]string{"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Error(err)
	}
	return text
}

// remove removes the audit events from the table.
func (a *audited) remove(t *testing.T) {
	t.Helper()
	db := a.server.Client(t)
	out, err := db.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &a.table, FilterExpression: aws.String("begins_with(SK, :audit)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":audit": &types.AttributeValueMemberS{Value: "#AUDIT#"}},
	})
	if err != nil || len(out.Items) != 3 {
		t.Fatalf("%d events, %v", len(out.Items), err)
	}
	for _, item := range out.Items { // in the order of their times
		key := map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &a.table, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
}

// A process puts audit events that expire into the archive, as they were listed. A bucket that
// does not exist is an error when the process starts.
func TestAggregateArchives(t *testing.T) {
	bucket := newBucket(t, startMoto(t), "audit-events")
	var puts atomic.Int64
	t.Setenv("AWS_ENDPOINT_URL_S3", newDoor(t, bucket, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || puts.Add(1) > 3 { // as often as the client tries at once
			return true
		}
		select { // it is slow, too
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusInternalServerError)
		return false
	}))
	a := newAudited(t)
	file := programtest.WriteFile(t, "aggregate.yaml", onTable(a.expiring(t), a.table, "100/minute"))
	if code, _, stderr := output(t, "aggregate", "-c", file, "--archive", "s3://no-such-bucket/audit"); code != 1 || !strings.Contains(stderr, "there is no bucket no-such-bucket") {
		t.Errorf("a bucket that does not exist: %d %s", code, stderr)
	}
	if code, _, stderr := output(t, "aggregate", "-c", file, "--archive", "audit-events"); code != 2 || !strings.Contains(stderr, "s3://bucket/audit") {
		t.Errorf("no place of an archive: %d %s", code, stderr)
	}
	a.remove(t)
	process := aggregate(t, file, "--archive", "s3://audit-events/audit")
	eventually(t, "three events in the archive", func() bool {
		lines, _ := archived(t, bucket)
		return len(lines) >= 3
	})
	process.end(t)
	lines, names := archived(t, bucket)
	a.wantArchived(t, lines, names)
	if !strings.Contains(process.log.String(), "audit events cannot be archived") {
		t.Errorf("S3 has failed %d times, and the log is\n%s", puts.Load(), process.log)
	}
}

// The function archives as a process does, and a call that Lambda repeats makes the same object again. While S3
// fails, the function says from which record on it must be called again.
func testLambdaArchives(t *testing.T, program string) {
	t.Helper()
	bucket := newBucket(t, startMoto(t), "audit-events")
	a := newAudited(t)
	shard, records := streamOf(t, a.server, a.table)
	expired := a.expire(t, records)
	var denied atomic.Bool
	door := newDoor(t, bucket, func(w http.ResponseWriter, _ *http.Request) bool {
		if denied.Load() {
			w.WriteHeader(http.StatusForbidden)
			return false
		}
		return true
	})
	function := startLambda(t, program, map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": a.server.URL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": a.server.URL, "AWS_ENDPOINT_URL_S3": door,
		"RATELIMIT_TABLE": a.table, "RATELIMIT_ARCHIVE": "s3://audit-events/audit",
	})
	denied.Store(true)
	if failed := function.failures(t, shard, records); len(failed) != 0 {
		t.Errorf("no event expires, and the function reports %q", failed)
	}
	if failed := function.failures(t, shard, expired); len(failed) != 1 || !strings.Contains(string(expired[0]), `"`+failed[0]+`"`) {
		t.Errorf("S3 refuses, and the function reports %q", failed)
	}
	denied.Store(false)
	for range 2 {
		if failed := function.failures(t, shard, expired); len(failed) != 0 {
			t.Errorf("the function reports %q", failed)
		}
		lines, names := archived(t, bucket)
		a.wantArchived(t, lines, names)
	}
	if metrics := function.out.String(); strings.Count(metrics, `"ArchivedEvents":3`) != 2 {
		t.Errorf("no three events twice in\n%s", metrics)
	}
}

// expire returns the creations of audit events among records as their expiry.
func (a *audited) expire(t *testing.T, records []json.RawMessage) (expired []json.RawMessage) {
	t.Helper()
	for _, r := range records {
		if !strings.Contains(string(r), `"SK":{"S":"#AUDIT#`) {
			continue
		}
		text := strings.NewReplacer(`"NewImage"`, `"OldImage"`, `"eventName":"INSERT"`,
			`"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`).Replace(string(r))
		expired = append(expired, json.RawMessage(text))
	}
	if len(expired) != 3 {
		t.Fatalf("%d events in the stream", len(expired))
	}
	return expired
}
