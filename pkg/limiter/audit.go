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
	Reason     string    // of the caller, see WithReason; "" = none
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
	ActionRestore      = "store.restore" // of a backup, in the default namespace
)

// Actions returns the actions of audit events of any store.
func Actions() []string {
	return []string{
		ActionPutEntity, ActionDeleteEntity, ActionDisableEntity, ActionEnableEntity,
		ActionPutLimits, ActionDeleteLimits, ActionDisableResource, ActionEnableResource,
		ActionResetBucket, ActionSetBucket, ActionTopUpBucket, ActionTakeOutBucket,
		ActionCreateNamespace, ActionDeleteNamespace, ActionRecoverNamespace, ActionPurgeNamespace, ActionPurgedNamespace, ActionDisableNamespace, ActionEnableNamespace,
		ActionRestore,
	}
}

// AuditID returns the id of an event: ids sort by time, to the millisecond, and then by generation.
func AuditID(at time.Time, generation uint64) string {
	return at.UTC().Format(auditTime) + fmt.Sprintf("-%016x", generation)
}

// auditTime is the form of the time in an id.
const auditTime = "2006-01-02T15:04:05.000Z"

// ParseAuditID is the inverse of [AuditID]. It refuses any other text with [ErrInvalid]. Stores
// check the cursors of their events with it.
func ParseAuditID(id string) (at time.Time, generation uint64, err error) {
	text, rest, ok := cutAt(id, len(auditTime))
	at, timeErr := time.Parse(auditTime, text)
	generation, err = strconv.ParseUint(strings.TrimPrefix(rest, "-"), 16, 64)
	if !ok || timeErr != nil || err != nil || len(rest) != 17 || rest[0] != '-' {
		return at, 0, fmt.Errorf("%w: %.100q is no cursor of a page of this list", ErrInvalid, id)
	}
	return at, generation, nil
}

// cutAt cuts text behind its first bytes; it is false where there are fewer.
func cutAt(text string, bytes int) (before, after string, ok bool) {
	if len(text) < bytes {
		return text, "", false
	}
	return text[:bytes], text[bytes:], true
}

// AuditLog lists the audit events of a store whose capabilities have AuditLogging; of any
// other the list is empty. An expired event is in no list.
type AuditLog interface {
	// ListEvents lists the events of a namespace that f selects, the newest first. It reads a
	// bounded number of events for a page. So a page can have fewer events than its size, even
	// none, and a Next. A cursor is an id of [AuditID]: the page has older events. In a fleet a
	// list of several subjects can miss events of the last second.
	ListEvents(ctx context.Context, namespace string, f AuditFilter, p Page) (PageOf[AuditEvent], error)
}

// AuditFilter selects audit events. The zero value selects all of a namespace.
type AuditFilter struct {
	Subject   *Ref      // only those listed under this subject, see [Ref.AuditSubject]; nil = all
	Principal string    // only those of this principal; "" = any
	Action    string    // only those of this action, such as limits.put, or of a kind, such as limits; "" = any
	From, To  time.Time // only those at From or later, and before To; zero = without a bound
}

// AuditOf returns the filter of the events of a subject.
func AuditOf(subject Ref) AuditFilter { return AuditFilter{Subject: &subject} }

// Selects reports whether the filter selects an event.
func (f *AuditFilter) Selects(e *AuditEvent) bool {
	switch {
	case f.Subject != nil && e.Subject.AuditSubject() != f.Subject.AuditSubject(),
		f.Principal != "" && e.Principal != f.Principal,
		f.Action != "" && e.Action != f.Action && !strings.HasPrefix(e.Action, f.Action+"."),
		!f.From.IsZero() && e.Time.Before(f.From),
		!f.To.IsZero() && !e.Time.Before(f.To):
		return false
	}
	return true
}

// Range returns the ids of the page after a cursor: from first, "" = any, and below before,
// "" = any. It refuses a cursor that is no id with [ErrInvalid].
func (f *AuditFilter) Range(after string) (first, before string, err error) {
	begin := func(t time.Time) string { return AuditID(t.Add(time.Millisecond-1), 0) } // events have whole milliseconds
	if !f.From.IsZero() {
		first = begin(f.From)
	}
	if after != "" {
		if _, _, err := ParseAuditID(after); err != nil {
			return "", "", err
		}
		before = after
	}
	if !f.To.IsZero() && (before == "" || begin(f.To) < before) {
		before = begin(f.To)
	}
	return first, before, nil
}

// AuditSubject returns the subject under which the events of a record are listed: the entity, also
// for its limits; the resource; or the system.
func (r Ref) AuditSubject() Ref {
	if r.Kind == RefEntityLimits {
		return EntityRef(r.Entity)
	}
	return r
}
