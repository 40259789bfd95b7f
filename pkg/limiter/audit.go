package limiter

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AuditEvent records a change of entities or limits. Stores with audit events (see
// BackendCapabilities.AuditLogging) write each in the transaction of its change. They keep it for
// AuditRetention, or as long as configured.
type AuditEvent struct {
	ID         string    // of AuditID
	Time       time.Time // UTC, whole milliseconds
	Principal  string    // authenticated caller, see WithPrincipal; "" = a Go program, or not recorded
	Action     string    // kind of the change
	Subject    Ref       // the changed record
	Generation uint64    // after the change: of the namespace, or of the whole store where one counts for all
	Detail     string    // the new contents, for people
	Before     Record    // of Subject; empty = none, or not recorded
	After      Record
}

// AuditRetention is how long a store keeps audit events that has no setting of its own.
const AuditRetention = 90 * 24 * time.Hour

// The actions of audit events.
const (
	ActionPutEntity    = "entity.put"
	ActionDeleteEntity = "entity.delete"
	ActionPutLimits    = "limits.put"
	ActionDeleteLimits = "limits.delete"
)

// AuditID returns the id of an event: ids sort by time, to the millisecond, and then by generation.
func AuditID(at time.Time, generation uint64) string {
	return at.UTC().Format(auditTime) + fmt.Sprintf("-%016x", generation)
}

// auditTime is the form of the time in an id.
const auditTime = "2006-01-02T15:04:05.000Z"

// CheckAuditID refuses, with [ErrInvalid], text that is no id of [AuditID]. Stores check the
// cursors of their events with it.
func CheckAuditID(id string) error {
	at, generation, ok := cutAt(id, len(auditTime))
	_, timeErr := time.Parse(auditTime, at)
	if _, err := strconv.ParseUint(strings.TrimPrefix(generation, "-"), 16, 64); !ok || timeErr != nil || err != nil || len(generation) != 17 || generation[0] != '-' {
		return fmt.Errorf("%w: %.100q is no cursor of a page of this list", ErrInvalid, id)
	}
	return nil
}

// cutAt cuts text behind its first bytes; it is false where there are fewer.
func cutAt(text string, bytes int) (before, after string, ok bool) {
	if len(text) < bytes {
		return text, "", false
	}
	return text[:bytes], text[bytes:], true
}

// AuditLog lists the audit events of a store whose capabilities have AuditLogging; of any
// other the list is empty.
type AuditLog interface {
	// ListEvents lists the events of a subject, see [Ref.AuditSubject], the newest first.
	ListEvents(ctx context.Context, namespace string, subject Ref, p Page) (PageOf[AuditEvent], error)
}

// AuditSubject returns the subject under which the events of a record are listed: the entity, also
// for its limits; the resource; or the system.
func (r Ref) AuditSubject() Ref {
	if r.Kind == RefEntityLimits {
		return EntityRef(r.Entity)
	}
	return r
}
