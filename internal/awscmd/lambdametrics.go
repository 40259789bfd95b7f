package awscmd

import (
	"encoding/json"
	"io"
	"time"
)

// metricsNamespace is that of the metrics in CloudWatch.
const metricsNamespace = "Ratelimit/Aggregator"

// lambdaCounts are the metrics of a call.
type lambdaCounts struct {
	Records         int     `json:"Records"`         // of the stream, those of other items too
	Snapshots       int     `json:"Snapshots"`       // writes of snapshots
	RepeatedRecords int     `json:"RepeatedRecords"` // that a snapshot had already, once for each of its windows
	MisdatedRecords int     `json:"MisdatedRecords"` // booked to the time of their write, since that of their decision cannot be right
	DeadLetters     int     `json:"DeadLetters"`     // records that cannot be counted
	ArchivedEvents  int     `json:"ArchivedEvents"`  // audit events
	Splits          int     `json:"Splits"`          // of buckets that were finished in place of a replica
	Failures        int     `json:"Failures"`        // writes that failed, for which records are repeated
	AgeSeconds      float64 `json:"AgeSeconds"`      // of the newest record

	*ToldEvents // nil = there are no budgets
}

// lambdaLine is a line of the log in CloudWatch's embedded metric format.
type lambdaLine struct {
	lambdaCounts

	AWS   lambdaMetadata `json:"_aws"`
	Table string         `json:"Table"`
}

// lambdaMetadata names for CloudWatch the members of a line that are metrics.
type lambdaMetadata struct {
	Timestamp         int64             `json:"Timestamp"` // Unix ms
	CloudWatchMetrics []lambdaDirective `json:"CloudWatchMetrics"`
}

type lambdaDirective struct {
	Namespace  string         `json:"Namespace"`
	Dimensions [][]string     `json:"Dimensions"`
	Metrics    []lambdaMetric `json:"Metrics"`
}

type lambdaMetric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// write writes the metrics of a call at a time as a line of the log.
func (c lambdaCounts) write(to io.Writer, table string, at time.Time) {
	names := []string{"Records", "Snapshots", "RepeatedRecords", "MisdatedRecords", "DeadLetters", "ArchivedEvents", "Splits", "Failures"}
	if c.ToldEvents != nil {
		names = append(names, "BudgetEvents", "WebhookSent", "WebhookFailures", "WebhookDropped", "ConfigurationFailures")
	}
	metrics := make([]lambdaMetric, 0, 1+len(names))
	metrics = append(metrics, lambdaMetric{"AgeSeconds", "Seconds"})
	for _, name := range names {
		metrics = append(metrics, lambdaMetric{name, "Count"})
	}
	text, err := json.Marshal(lambdaLine{c, lambdaMetadata{at.UnixMilli(), []lambdaDirective{{metricsNamespace, [][]string{{"Table"}}, metrics}}}, table})
	if err != nil {
		return // numbers and texts can always be written
	}
	_, _ = to.Write(append(text, '\n')) // a lost line of metrics stops no record
}
