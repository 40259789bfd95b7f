package admin

import (
	"encoding/json"
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// kindOf returns the kind of a problem that follows from its status.
func kindOf(status int) api.Kind {
	switch status {
	case http.StatusUnauthorized:
		return api.Unauthorized
	case http.StatusForbidden:
		return api.Forbidden
	case http.StatusNotFound:
		return api.NotFound
	case http.StatusMethodNotAllowed:
		return api.Method
	case http.StatusUnsupportedMediaType:
		return api.MediaType
	case http.StatusBadRequest:
		return api.Invalid
	default:
		return api.Unavailable
	}
}

// writeProblem answers with a problem of administration.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	WriteProblem(w, api.Problem{Type: kindOf(status), Status: status, Detail: detail})
}

// WriteProblem answers a request with a problem. Its title is that of its status.
func WriteProblem(w http.ResponseWriter, p api.Problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(p) // an error says that the client has gone
}
