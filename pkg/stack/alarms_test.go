package stack_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// watch is an alarm: the metric of AWS that it watches, and from which value on it is raised.
type watch struct {
	namespace, metric, statistic string
	dimensions                   map[string]any // logical names, texts or attributes
	period, threshold            float64        // seconds, unit of the metric
}

// watches are the alarms of a stack with other thresholds than the defaults. The metrics of
// DynamoDB, Lambda and SQS, and their dimensions, are those of the user guides of AWS.
func watches() map[string]watch {
	table, function := map[string]any{"TableName": "Table"}, map[string]any{"FunctionName": "Aggregator"}
	return map[string]watch{
		"WriteThrottlesAlarm":        {"AWS/DynamoDB", "WriteThrottleEvents", "Sum", table, 60, 10},
		"ReadThrottlesAlarm":         {"AWS/DynamoDB", "ReadThrottleEvents", "Sum", table, 60, 10},
		"SystemErrorsAlarm":          {"AWS/DynamoDB", "SystemErrors", "Sum", map[string]any{"TableName": "Table", "Operation": "UpdateItem"}, 60, 1},
		"AggregatorErrorsAlarm":      {"AWS/Lambda", "Errors", "Sum", function, 300, 1},
		"AggregatorThrottlesAlarm":   {"AWS/Lambda", "Throttles", "Sum", function, 300, 1},
		"AggregatorDurationAlarm":    {"AWS/Lambda", "Duration", "Maximum", function, 300, 15_000}, // ms: half of 30 s
		"AggregatorLagAlarm":         {"AWS/Lambda", "IteratorAge", "Maximum", function, 300, 60_000},
		"AggregatorDeadLettersAlarm": {"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", map[string]any{"QueueName": "AggregatorDeadLetters.QueueName"}, 300, 1},
		"AggregatorUncountedAlarm":   {"Ratelimit/Aggregator", "DeadLetters", "Sum", map[string]any{"Table": "Table"}, 300, 1},
	}
}

// alarms returns the alarms of a template.
func (got template) alarms(t *testing.T) map[string]watch {
	t.Helper()
	found := map[string]watch{}
	for name := range strings.FieldsSeq(got.names("AWS::CloudWatch::Alarm")) {
		p := got.Resources[name].Properties
		for property, want := range map[string]any{
			"ComparisonOperator": "GreaterThanOrEqualToThreshold", "EvaluationPeriods": 1.0, "TreatMissingData": "notBreaching",
		} {
			if p[property] != want {
				t.Errorf("%s: %s is %v, want %v", name, property, p[property], want)
			}
		}
		w := watch{p["Namespace"].(string), p["MetricName"].(string), p["Statistic"].(string), map[string]any{}, p["Period"].(float64), p["Threshold"].(float64)}
		for _, d := range p["Dimensions"].([]any) {
			w.dimensions[at(t, d, "Name").(string)] = referred(at(t, d, "Value"))
		}
		found[name] = w
	}
	return found
}

// referred returns the target of a reference in a template: a logical name, or one and an
// attribute.
func referred(value any) any {
	reference, is := value.(map[string]any)
	if !is {
		return value
	}
	if parts, is := reference["Fn::GetAtt"].([]any); is {
		return parts[0].(string) + "." + parts[1].(string)
	}
	return reference["Ref"]
}

// Each alarm watches a metric that exists, and is raised as the options say.
func TestAlarms(t *testing.T) {
	all := rendered(t, everything())
	if diff := cmp.Diff(watches(), all.alarms(t), cmp.AllowUnexported(watch{})); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	for name := range watches() {
		for _, actions := range []string{"AlarmActions", "OKActions"} {
			if diff := cmp.Diff([]any{everything().Alarms.Topic}, all.Resources[name].Properties[actions]); diff != "" {
				t.Errorf("%s, %s: %s", name, actions, diff)
			}
		}
	}
	if got := rendered(t, stack.Options{Name: "limits", Alarms: stack.Alarms{Off: true}}).alarms(t); len(got) != 0 {
		t.Errorf("without alarms: %v", got)
	}
}

// Without options the alarms have the thresholds that the documentation states, and no topic.
func TestAlarmsByDefault(t *testing.T) {
	want := watches()
	for name, threshold := range map[string]float64{
		"WriteThrottlesAlarm": 1, "ReadThrottlesAlarm": 1, "AggregatorDurationAlarm": 48_000, "AggregatorLagAlarm": 300_000, // ms: 80 % of 60 s
	} {
		w := want[name]
		w.threshold = threshold
		want[name] = w
	}
	got := rendered(t, stack.Options{Name: "limits", Aggregator: stack.Aggregator{On: true}})
	if diff := cmp.Diff(want, got.alarms(t), cmp.AllowUnexported(watch{})); diff != "" {
		t.Errorf("with an aggregator (-want +got):\n%s", diff)
	}
	for name := range want {
		if actions, set := got.Resources[name].Properties["AlarmActions"]; set {
			t.Errorf("%s notifies %v", name, actions)
		}
	}
	maps.DeleteFunc(want, func(name string, _ watch) bool { return strings.HasPrefix(name, "Aggregator") })
	if diff := cmp.Diff(want, rendered(t, stack.Options{Name: "limits"}).alarms(t), cmp.AllowUnexported(watch{})); diff != "" {
		t.Errorf("without an aggregator (-want +got):\n%s", diff)
	}
}

// unread is a stream whose records the function cannot read.
type unread struct{ awscmd.FunctionStream }

func (unread) Record(*types.Record) aggregator.Record {
	return aggregator.Record{Sequence: "1", Problem: errors.New("not in the form of an item")}
}

func (unread) Shards(context.Context) ([]aggregator.Shard, error) { return nil, nil }

// The alarm on uncounted records watches a metric that the function writes, with its dimension.
func TestAlarmOfTheFunctionsMetric(t *testing.T) {
	var out strings.Builder
	f, err := awscmd.NewFunction(awscmd.FunctionConfig{Stream: unread{}, Metrics: &out, Table: "limits"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Handle(t.Context(), awscmd.LambdaEvent{ShardID: "shard", Records: []json.RawMessage{json.RawMessage(`7`)}}); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	w := rendered(t, everything()).alarms(t)["AggregatorUncountedAlarm"]
	directive := at(t, line, "_aws", "CloudWatchMetrics", 0)
	if got := at(t, directive, "Namespace"); got != w.namespace {
		t.Errorf("the function writes to %v, and the alarm watches %s", got, w.namespace)
	}
	if got, want := at(t, directive, "Dimensions", 0), slices.Sorted(maps.Keys(w.dimensions)); !cmp.Equal(got, []any{want[0]}) || len(want) != 1 || line[want[0]] != "limits" {
		t.Errorf("dimensions: the function has %v, and the alarm %v", got, want)
	}
	declared := slices.ContainsFunc(at(t, directive, "Metrics").([]any), func(m any) bool { return at(t, m, "Name") == w.metric })
	if !declared || line[w.metric] != 1.0 {
		t.Errorf("the function has one record that it cannot count, and %s is %v", w.metric, line[w.metric])
	}
}
