package limiter

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Reports is the part of the store of a fleet by which its replicas tell each other of themselves. No
// decision needs it. A store in one process does not have it.
type Reports interface {
	// WriteReport stores the report of a replica, in the place of its last one. It is sent once: after an
	// error the next report takes its place. It fails with [ErrInvalid] where [CheckReport] does, and where
	// the store permits no reports.
	WriteReport(ctx context.Context, replica string, body []byte) error

	// ReadReports returns the last report of each replica that was written in the last [ReportAge], at most
	// [MaxReports], in any order. A replica that has stopped is among them. A report that another process wrote in
	// the last second may be missing.
	ReadReports(ctx context.Context) ([]Report, error)
}

// Bounds of reports.
const (
	// MaxReport is the longest body of a report, in bytes. With its key, an item has at most 4 KiB then.
	MaxReport = 3900
	// MaxReports is how many reports are read at most.
	MaxReports = 1000
	// MaxReplicaLength is the longest id of a replica, in bytes.
	MaxReplicaLength = 64
	// ReportAge is how long a report is kept.
	ReportAge = 30 * time.Minute
)

// Report is the report of a replica.
type Report struct {
	Replica string
	Age     time.Duration // since it was written, by the clocks of the store, whole ms; 0 or above
	Body    []byte        // not to be changed
}

// CheckReport refuses, with [ErrInvalid], an id of a replica or a body that no report may have. An id is 1 to
// MaxReplicaLength lower-case letters, digits and hyphens. A body has 1 to MaxReport bytes.
func CheckReport(replica string, body []byte) error {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if replica == "" || len(replica) > MaxReplicaLength || strings.Trim(replica, allowed) != "" {
		return fmt.Errorf("%w: the id of a replica is %.100q; it must be 1 to %d lower-case letters, digits and hyphens", ErrInvalid, replica, MaxReplicaLength)
	}
	if n := len(body); n == 0 || n > MaxReport {
		return fmt.Errorf("%w: a report has %d bytes; it must have 1 to %d", ErrInvalid, n, MaxReport)
	}
	return nil
}
