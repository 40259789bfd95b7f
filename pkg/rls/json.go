package rls

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MaxJSON is the greatest size of a JSON request in bytes: 16 MiB.
const MaxJSON = 16 << 20

// JSONHandler returns a handler for the service over HTTP: a POST with a
// RateLimitRequest in protobuf's JSON, in camelCase or snake_case, is answered by
// a RateLimitResponse. The status is 200 for OK and 429 for OVER_LIMIT, and the
// response headers of the answer are those of the response. What is wrong with a
// request is said with 400, 405 or 413 and {"error": "..."}; a refund or a charge that
// [JSONOptions] do not allow, with 403. The handler asks for no credential, and takes any
// media type: keep pages in browsers from it.
func (s *Service) JSONHandler() http.Handler {
	return http.HandlerFunc(s.serveJSON)
}

func (s *Service) serveJSON(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "use POST, with a RateLimitRequest in JSON")
		return
	}
	wire, err := readJSON(http.MaxBytesReader(w, r.Body, MaxJSON))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "the request is larger than 16 MiB")
		return
	}
	if err != nil {
		s.metrics.invalid.WithLabelValues("malformed").Inc()
		refuse(w, http.StatusBadRequest, "not a RateLimitRequest in JSON: "+err.Error())
		return
	}
	out, err := s.answerWire(r.Context(), wire)
	if err != nil {
		code := http.StatusBadRequest
		if status.Code(err) == codes.PermissionDenied {
			code = http.StatusForbidden
		}
		refuse(w, code, status.Convert(err).Message())
		return
	}
	body, err := toJSON(out.data)
	if err != nil { // cannot be: the answer is our own
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	readHeaders(out.data, w.Header().Add)
	w.Header().Set("Content-Type", "application/json")
	if out.denied {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(append(body, '\n')) // for people at a terminal; the client has gone, if it fails
}

// answerWire answers a call that comes as the wire form of a RateLimitRequest.
func (s *Service) answerWire(ctx context.Context, wire []byte) (*answer, error) {
	return s.unary(ctx, func(v any) error {
		c := v.(*call) // unary passes no other type
		c.decode(wire)
		c.json = true
		return nil
	}, nil)
}

// readJSON returns the wire form of a RateLimitRequest in JSON.
func readJSON(body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var m rlsv3.RateLimitRequest
	if err := protojson.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	return proto.Marshal(&m)
}

func toJSON(wire []byte) ([]byte, error) {
	var m rlsv3.RateLimitResponse
	if err := proto.Unmarshal(wire, &m); err != nil {
		return nil, err
	}
	return protojson.Marshal(&m)
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // the client has gone, if it fails
}
