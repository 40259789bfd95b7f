package command

import (
	"encoding/json"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// AuditLine is a line of an archive.
type AuditLine struct {
	NamespaceID string `json:"namespace_id"`
	api.AuditEvent
}

// UnreadAuditLine is a line with an event that the program cannot read, such as one of a newer version.
type UnreadAuditLine struct {
	NamespaceID string         `json:"namespace_id"`
	ID          string         `json:"id"`
	Problem     string         `json:"problem"`
	Item        map[string]any `json:"item"` // its attributes in the table
}

// EncodeAuditLine returns the line of an event, without a line break.
func EncodeAuditLine(e *aggregator.Expired) ([]byte, error) {
	if e.Problem != nil {
		return json.Marshal(UnreadAuditLine{e.Namespace, e.Event.ID, e.Problem.Error(), e.Item})
	}
	event, err := controlapi.AuditEvent(&e.Event)
	if err != nil {
		return nil, err
	}
	return json.Marshal(AuditLine{e.Namespace, event})
}
