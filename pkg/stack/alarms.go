package stack

// alarm is one of CloudWatch: a statistic of a metric over minutes that reaches a threshold.
type alarm struct {
	logical, description    string
	namespace, metric, stat string
	dimensions              object // name to value
	threshold, minutes      int    // both at least 1
}

// addAlarms adds the alarms of the table and of the aggregator.
func (t *builder) addAlarms() {
	if t.o.Alarms.Off {
		return
	}
	for _, a := range t.tableAlarms() {
		t.alarm(a)
	}
	if t.o.Aggregator.On {
		for _, a := range t.aggregatorAlarms() {
			t.alarm(a)
		}
	}
}

func (t *builder) tableAlarms() []alarm {
	table := object{"TableName": t.tableName()}
	update := object{"TableName": t.tableName(), "Operation": "UpdateItem"}
	return []alarm{
		{
			"WriteThrottlesAlarm", "Writes of the table are throttled: decisions wait, then on_unavailable decides",
			"AWS/DynamoDB", "WriteThrottleEvents", "Sum", table, t.o.Alarms.Throttles, 1,
		},
		{
			"ReadThrottlesAlarm", "Reads of the table are throttled",
			"AWS/DynamoDB", "ReadThrottleEvents", "Sum", table, t.o.Alarms.Throttles, 1,
		},
		{
			"SystemErrorsAlarm", "DynamoDB answers writes with errors of its own",
			"AWS/DynamoDB", "SystemErrors", "Sum", update, 1, 1,
		},
	}
}

func (t *builder) aggregatorAlarms() []alarm {
	function := object{"FunctionName": ref(logicalFunction)}
	duration := t.o.Aggregator.TimeoutSeconds * 1000 * t.o.Alarms.DurationPercent / 100
	return []alarm{
		{"AggregatorErrorsAlarm", "The aggregator fails", "AWS/Lambda", "Errors", "Sum", function, 1, 5},
		{"AggregatorThrottlesAlarm", "The aggregator is throttled", "AWS/Lambda", "Throttles", "Sum", function, 1, 5},
		{"AggregatorDurationAlarm", "The aggregator comes near its timeout", "AWS/Lambda", "Duration", "Maximum", function, max(duration, 1), 5},
		{"AggregatorLagAlarm", "The aggregator is behind the stream", "AWS/Lambda", "IteratorAge", "Maximum", function, 1000 * t.o.Alarms.LagSeconds, 5},
		{
			"AggregatorDeadLettersAlarm", "Records of the stream could not be read", "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum",
			object{"QueueName": getAtt(logicalDeadLetters, "QueueName")},
			1, 5,
		},
		{
			"AggregatorUncountedAlarm", "Records of the stream cannot be counted: the aggregator's log has their keys", "Ratelimit/Aggregator", "DeadLetters", "Sum",
			object{"Table": t.tableName()},
			1, 5,
		},
	}
}

func (t *builder) alarm(a alarm) {
	var dimensions []any
	for _, name := range []string{"TableName", "Operation", "FunctionName", "QueueName", "Table"} {
		if value, ok := a.dimensions[name]; ok {
			dimensions = append(dimensions, object{"Name": name, "Value": value})
		}
	}
	properties := object{
		"AlarmDescription": t.o.Name + ": " + a.description,
		"Namespace":        a.namespace, "MetricName": a.metric, "Statistic": a.stat, "Dimensions": dimensions,
		"Period": 60 * a.minutes, "EvaluationPeriods": 1,
		"ComparisonOperator": "GreaterThanOrEqualToThreshold", "Threshold": a.threshold,
		"TreatMissingData": "notBreaching",
	}
	if t.o.Alarms.Topic != "" {
		properties["AlarmActions"] = []string{t.o.Alarms.Topic}
		properties["OKActions"] = []string{t.o.Alarms.Topic}
	}
	t.resources[a.logical] = resource("AWS::CloudWatch::Alarm", properties)
}
