package schema

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// attrReport is the body of a replica's report; binary.
const attrReport = "report"

const (
	replicasPK      = RegistryNS + "/REPLICAS#"
	skReplicaPrefix = "#REPLICA#"
)

// ReportKey returns the key of the report of a replica.
func ReportKey(replica string) Key { return Key{replicasPK, skReplicaPrefix + replica} }

// QueryReports finds the reports of all replicas. The table is not read consistently: a report is as good as the
// next one, and costs half then.
func QueryReports(table string) *dynamodb.QueryInput {
	return queryReports(table, replicasPK, skReplicaPrefix)
}

func queryReports(table, pk, prefix string) *dynamodb.QueryInput {
	q := query(table, "", AttrPK, pk, AttrSK, prefix)
	q.ConsistentRead = nil
	return q
}

// PutReport stores the report of a replica. limiter.CheckReport must allow it. The item is in no index.
func PutReport(replica string, body []byte, now time.Time) *ItemWrite {
	item := ReportKey(strings.Clone(replica)).Attributes()
	item[attrReport] = &types.AttributeValueMemberB{Value: body}
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	item[AttrTTL] = NumberAttribute(now.Add(limiter.ReportAge).Unix())
	return NewPut(item)
}

// DeleteReport deletes the report of a replica, unless it is newer than a time.
func DeleteReport(replica string, written time.Time) *ItemWrite {
	return deleteReport(ReportKey(replica), written)
}

func deleteReport(k Key, written time.Time) *ItemWrite {
	w := NewDelete(k)
	w.Require(AttrCreatedAt, "<=", NumberAttribute(written.UnixMilli()))
	return w
}

// ParseReport reads the report of a replica, and when it was written. It does not set the age.
func ParseReport(table string, item map[string]types.AttributeValue) (report limiter.Report, written time.Time, err error) {
	k, err := ItemKey(table, item)
	if err != nil {
		return limiter.Report{}, time.Time{}, err
	}
	r := NewReader(table, k, item)
	written = time.UnixMilli(r.Int(AttrCreatedAt, MinTime, MaxTime))
	body, ok := item[attrReport].(*types.AttributeValueMemberB)
	if !ok {
		r.Fail(attrReport, "is %s; it must be binary", TypeName(item[attrReport]))
		return limiter.Report{}, time.Time{}, r.Fault
	}
	report = limiter.Report{Replica: strings.TrimPrefix(k.SK, skReplicaPrefix), Body: body.Value}
	if err := limiter.CheckReport(report.Replica, report.Body); err != nil {
		r.Fail(attrReport, "is no report: %v", err)
	}
	if r.Fault != nil {
		return limiter.Report{}, time.Time{}, r.Fault
	}
	return report, written, nil
}
