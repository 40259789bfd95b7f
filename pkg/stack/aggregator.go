package stack

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Logical names of the aggregator's resources.
const (
	logicalFunction    = "Aggregator"
	logicalRole        = "AggregatorRole"
	logicalLog         = "AggregatorLog"
	logicalDeadLetters = "AggregatorDeadLetters"
	logicalSource      = "AggregatorSource"

	parameterBucket = "AggregatorCodeBucket"
	parameterKey    = "AggregatorCodeKey"
)

// How the stream is read.
const (
	batchRecords    = 1000  // in a call of the function
	batchSeconds    = 5     // that records wait for a fuller batch
	recordAge       = 79200 // of a record that goes to the dead letters, in seconds; the stream drops it after 86,400
	windowSeconds   = 900   // the longest: only calls of a window name their shard
	deadLetterDays  = 14
	secondsInADay   = 24 * 60 * 60
	visibilityTimes = 6 // the queue's visibility timeout, in timeouts of the function
)

// addAggregator adds the function that reads the stream, with its role, log, dead letters and
// archive.
func (t *builder) addAggregator() {
	a := t.o.Aggregator
	if !a.On {
		return
	}
	role := any(a.RoleARN)
	if a.RoleARN == "" {
		role = getAtt(logicalRole, "Arn")
		t.addAggregatorRole()
	}
	t.resources[logicalLog] = passing(resource("AWS::Logs::LogGroup", object{
		"LogGroupName": "/aws/lambda/" + t.o.Name + "-" + aggregatorComponent, "RetentionInDays": a.LogDays,
	}))
	t.resources[logicalDeadLetters] = passing(resource("AWS::SQS::Queue", object{
		"MessageRetentionPeriod": deadLetterDays * secondsInADay, "SqsManagedSseEnabled": true, "VisibilityTimeout": visibilityTimes * a.TimeoutSeconds,
	}))
	if !a.Archive.Off {
		t.addArchive()
	}
	t.addFunction(role)
	t.resources[logicalSource] = resource("AWS::Lambda::EventSourceMapping", t.source())
	t.output("AggregatorArn", "ARN of the aggregator", getAtt(logicalFunction, "Arn"))
	t.output("AggregatorDeadLettersUrl", "Queue of records that the aggregator could not read", ref(logicalDeadLetters))
}

func (t *builder) addFunction(role any) {
	a := t.o.Aggregator
	tracing := "PassThrough"
	if a.Tracing {
		tracing = "Active"
	}
	properties := object{
		"Description":   "Reads the stream of table " + t.o.Name,
		"Runtime":       "provided.al2023",
		"Architectures": []string{lambdaArchitecture(a.Architecture)},
		"Handler":       "bootstrap",
		"Code":          t.code(),
		"Role":          role,
		"MemorySize":    a.MemoryMiB,
		"Timeout":       a.TimeoutSeconds,
		"TracingConfig": object{"Mode": tracing},
		"LoggingConfig": object{"LogGroup": ref(logicalLog)},
		"Environment":   object{"Variables": t.environment()},
	}
	t.resources[logicalFunction] = resource("AWS::Lambda::Function", properties)
}

// code is where the artifact is: as the options say, or as parameters do.
func (t *builder) code() object {
	c := t.o.Aggregator.Code
	if c.Key == "" {
		t.parameters[parameterBucket] = object{"Type": "String", "Description": "Bucket of S3 with the aggregator's artifact", "MinLength": 3}
		t.parameters[parameterKey] = object{"Type": "String", "Description": "Key of the aggregator's artifact, a ZIP file", "MinLength": 1}
		return object{"S3Bucket": ref(parameterBucket), "S3Key": ref(parameterKey)}
	}
	code := object{"S3Bucket": c.Bucket, "S3Key": c.Key}
	if c.Version != "" {
		code["S3ObjectVersion"] = c.Version
	}
	return code
}

// environment is the configuration of the function by variables.
func (t *builder) environment() object {
	a := t.o.Aggregator
	variables := object{
		"RATELIMIT_TABLE":   t.tableName(),
		"RATELIMIT_WINDOWS": strings.Join(a.Windows, ","),
	}
	if a.UsageDays > 0 {
		keep := make([]string, len(a.Windows))
		for i, w := range a.Windows {
			keep[i] = fmt.Sprintf("%s=%dh", w, 24*a.UsageDays)
		}
		variables["RATELIMIT_KEEP"] = strings.Join(keep, ",")
	}
	if !a.Archive.Off {
		variables["RATELIMIT_ARCHIVE"] = sub("s3://${" + logicalArchive + "}/" + archivePrefix)
	}
	if a.Config != "" {
		variables["RATELIMIT_CONFIG"] = a.Config
	}
	return variables
}

// lambdaArchitecture returns the name that Lambda has for an architecture.
func lambdaArchitecture(a Architecture) string {
	if a == ArchAMD64 {
		return "x86_64"
	}
	return string(a)
}

// source connects the function to the stream.
func (t *builder) source() object {
	patterns := StreamFilters(!t.o.Aggregator.Archive.Off)
	filters := make([]any, len(patterns))
	for i, pattern := range patterns {
		filters[i] = object{"Pattern": pattern}
	}
	return object{
		"EventSourceArn":                 t.stream(),
		"FunctionName":                   getAtt(logicalFunction, "Arn"),
		"StartingPosition":               "TRIM_HORIZON", // LATEST may miss records while the mapping is made
		"BatchSize":                      batchRecords,
		"MaximumBatchingWindowInSeconds": batchSeconds,
		"MaximumRetryAttempts":           -1, // a call fails only where a later one may succeed
		"MaximumRecordAgeInSeconds":      recordAge,
		"TumblingWindowInSeconds":        windowSeconds,
		"BisectBatchOnFunctionError":     true,
		"FunctionResponseTypes":          []string{"ReportBatchItemFailures"},
		"DestinationConfig":              object{"OnFailure": object{"Destination": getAtt(logicalDeadLetters, "Arn")}},
		"FilterCriteria":                 object{"Filters": filters},
	}
}

// StreamFilters returns the patterns, in the language of Lambda's event filters, of the
// records that the aggregator reads: changes of buckets, and with an archive also audit
// events that DynamoDB removes when they expire.
func StreamFilters(archive bool) []string {
	key := func(pattern any) object { return object{"Keys": object{"SK": object{"S": []any{pattern}}}} }
	filters := []object{{"dynamodb": key("#STATE")}}
	if archive {
		filters = append(filters, object{
			"eventName":    []string{"REMOVE"},
			"userIdentity": object{"type": []string{"Service"}, "principalId": []string{"dynamodb.amazonaws.com"}},
			"dynamodb":     key(object{"prefix": "#AUDIT#"}),
		})
	}
	patterns := make([]string, len(filters))
	for i, f := range filters {
		text, _ := json.Marshal(f) // texts and lists of texts: it cannot fail
		patterns[i] = string(text)
	}
	return patterns
}

// addAggregatorRole adds the function's role. It may check the table's version, write usage, and
// put objects into the archive. With a configuration it may read that object, the names of namespaces, and stored
// limits. Of buckets it finishes splits. It tells replicas how far it is. It reads no secret of the table.
func (t *builder) addAggregatorRole() {
	data := t.scope(anySpace)
	statements := []statement{
		data.describe(),
		allow("Version", []string{"GetItem"}, data.table).on(registryKeys),
		allow("Usage", []string{"UpdateItem"}, data.table).on(data.of("ENTITY#*")...),
		allow("Splits", []string{"GetItem", "PutItem", "UpdateItem"}, data.table).on(data.of("BUCKET#*")...),
		allow("Report", []string{"PutItem"}, data.table).on(progressKeys),
		allow("Stream", []string{"DescribeStream", "GetRecords", "GetShardIterator"}, t.stream()),
		allow("Streams", []string{"ListStreams"}, "*"), // the action has no resource
		allowed("Log", getAtt(logicalLog, "Arn"), "logs:CreateLogStream", "logs:PutLogEvents"),
		allowed("DeadLetters", getAtt(logicalDeadLetters, "Arn"), "sqs:SendMessage"),
	}
	if !t.o.Aggregator.Archive.Off {
		statements = append(statements, allowed("Archive", sub("${"+logicalArchive+".Arn}/"+archivePrefix+"/*"), "s3:PutObject"))
	}
	if object, ok := strings.CutPrefix(t.o.Aggregator.Config, "s3://"); ok {
		statements = append(statements,
			allow("Names", []string{"Query"}, data.table).on(registryKeys),
			allow("Limits", []string{"BatchGetItem"}, data.table).on(data.of("SYSTEM#", "ENTITY#*", "RESOURCE#*")...),
			allowed("Config", sub("arn:${AWS::Partition}:s3:::"+object), "s3:GetObject"))
	}
	if t.o.Aggregator.Tracing {
		statements = append(statements, allowed("Tracing", "*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"))
	}
	t.role(logicalRole, aggregatorComponent, assumedBy("lambda.amazonaws.com", "sts:AssumeRole"), object{
		"Policies": []any{object{"PolicyName": aggregatorComponent, "PolicyDocument": document(statements...)}},
	})
}

// allowed is a statement about another service than DynamoDB.
func allowed(sid string, on any, actions ...string) statement {
	return statement{Sid: sid, Effect: "Allow", Action: actions, Resource: []any{on}}
}
