// Package auditline writes audit events as lines of JSON for an archive.
//
// A line has the members that an event has in the API, and the id of its namespace.
package auditline

import (
	"encoding/json"

	"github.com/ratelimit/ratelimit/internal/controlapi"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// Line is a line of an archive.
type Line struct {
	NamespaceID string `json:"namespace_id"`
	api.AuditEvent
}

// Unread is a line with an event that the program cannot read, such as one of a newer version.
type Unread struct {
	NamespaceID string         `json:"namespace_id"`
	ID          string         `json:"id"`
	Problem     string         `json:"problem"`
	Item        map[string]any `json:"item"` // its attributes in the table
}

// Encode returns the line of an event, without a line break.
func Encode(e *aggregator.Expired) ([]byte, error) {
	if e.Problem != nil {
		return json.Marshal(Unread{e.Namespace, e.Event.ID, e.Problem.Error(), e.Item})
	}
	event, err := controlapi.AuditEvent(&e.Event)
	if err != nil {
		return nil, err
	}
	return json.Marshal(Line{e.Namespace, event})
}
