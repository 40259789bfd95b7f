package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// The status of a fleet says how far its aggregator is: none seen, up to date, and stopped. One that was stopped long ago is a problem
// with its next step.
func TestTheStatusHasTheAggregator(t *testing.T) {
	t.Parallel()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	file := programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, "100/minute"))
	service := start(t, "--config", file)
	service.ask(t, "ada")
	status := func() (int, string) {
		code, stdout, stderr := output(t, "status", "--server", service.adminURL(t))
		_, line, _ := strings.Cut(stdout, "\naggregator:")
		line, _, _ = strings.Cut(line, "\n")
		return code, strings.TrimSpace(line) + "\n" + stdout + stderr
	}
	says := func(code int, begin string) {
		t.Helper()
		var got int
		var text string
		eventually(t, "a line "+begin, func() bool {
			got, text = status()
			return strings.HasPrefix(text, begin)
		})
		if got != code {
			t.Errorf("%s: exit code %d, want %d\n%s", begin, got, code, text)
		}
	}
	says(0, "none seen in the last 3 days: usage is not counted\n")
	if _, _, stderr := output(t, "list", "usage", "--server", service.adminURL(t)); !strings.Contains(stderr, "note: aggregator: none seen in the last 3 days: usage is not counted\n") {
		t.Errorf("an empty list of usage has no note: %q", stderr)
	}
	a := aggregate(t, file)
	says(0, "up to date ")
	a.end(t)
	client := server.Client(t)
	age(t, client, table, 14*time.Minute)
	says(1, "it was stopped 14 min ago: usage and budget events are late\n")
	_, text := status()
	if want := "- aggregator: it was stopped 14 min ago: usage and budget events are late (since "; !strings.Contains(text, want) || !strings.Contains(text, "  next: start one within 24 hours, and nothing is lost") {
		t.Errorf("no problem with its next step:\n%s", text)
	}
	code, stdout, _ := output(t, "doctor", "--server", service.adminURL(t))
	if code != 1 || !strings.Contains(stdout, "aggregator: it was stopped 14 min ago") {
		t.Errorf("doctor: exit code %d\n%s", code, stdout)
	}
	again := aggregate(t, file)
	says(0, "up to date ")
	again.end(t)
}

// age makes the reports of aggregators in a table older, as time would.
func age(t *testing.T, client *dynamodb.Client, table string, by time.Duration) {
	t.Helper()
	out, err := client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("PK = :k"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":k": &types.AttributeValueMemberS{Value: "_/AGGREGATORS#"}},
	})
	if err != nil || len(out.Items) == 0 {
		t.Fatalf("reports of aggregators: %+v, %v", out, err)
	}
	for _, item := range out.Items {
		item["created_at"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(-by).UnixMilli(), 10)}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
}
