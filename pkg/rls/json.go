package rls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// MaxJSON is the largest JSON request that is read, in bytes: 1 MiB. A larger one is denied, see
// [MaxMessage].
const MaxJSON = 1 << 20

const (
	// jsonWeight is the memory that reading one byte of JSON takes, in bytes.
	jsonWeight = 8
	// maxBraces is the most opening braces of a request; a legal request has fewer outside its
	// values.
	maxBraces = 3*MaxDescriptors + MaxCallEntries
)

// ErrLarge says that a request is too large to read.
var ErrLarge = errors.New("too large")

// JSONHandler returns a handler for the service over HTTP. It answers a POST of a RateLimitRequest
// in protobuf's JSON, in camelCase or snake_case, with a RateLimitResponse. The status is 200 for
// OK, and for OVER_LIMIT 429, or that of the rule that denies. The response has the response headers of the answer. It answers a
// mistake in a request with 400 and {"error": "..."}. A refund or a charge that [JSONOptions] do not allow
// gets 403, and any call 503 while there are no rules. The handler asks for no credential, and takes any method and media type, so pages in browsers
// must not reach it.
func (s *Service) JSONHandler() http.Handler {
	return http.HandlerFunc(s.serveJSON)
}

func (s *Service) serveJSON(w http.ResponseWriter, r *http.Request) {
	wire, err := readJSON(s.Metered, http.MaxBytesReader(w, r.Body, MaxJSON))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || errors.Is(err, ErrLarge) {
		respond(w, s.tooLarge(r.Context(), nil, err.Error()))
		return
	}
	if err != nil {
		s.metrics.invalid.WithLabelValues("malformed").Inc()
		refuse(w, http.StatusBadRequest, "not a RateLimitRequest in JSON: "+err.Error())
		return
	}
	out, err := s.answerWire(r.Context(), wire)
	if err != nil {
		refuse(w, refusalStatus(err), status.Convert(err).Message())
		return
	}
	respond(w, out)
}

// refusalStatus returns the status over HTTP for an error of gRPC.
func refusalStatus(err error) int {
	switch status.Code(err) { //nolint:exhaustive // a call ends in no other
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

// respond writes an answer, with its headers.
func respond(w http.ResponseWriter, out *answer) {
	body, err := toJSON(out.data)
	if err != nil { // impossible: the answer was encoded here
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	readHeaders(out.data, w.Header().Add)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(out.status)
	_, _ = w.Write(append(body, '\n')) // readable at a terminal; an error says that the client has gone
}

// answerWire answers a call in the wire form of a RateLimitRequest.
func (s *Service) answerWire(ctx context.Context, wire []byte) (*answer, error) {
	return s.unary(ctx, nil, func(v any) error {
		c := v.(*call) // unary passes no other type
		c.decode(wire)
		c.json = true
		return nil
	}, nil)
}

// readJSON returns the wire form of a RateLimitRequest in JSON. It returns ErrLarge for one with
// too many braces, and when many large ones are read at this time.
func readJSON(metered func(io.Reader) (io.Reader, func()), body io.Reader) ([]byte, error) {
	m, end := metered(body)
	defer end()
	text, err := io.ReadAll(m)
	if err != nil {
		return nil, err
	}
	if bytes.Count(text, []byte("{")) > maxBraces {
		return nil, fmt.Errorf("%w: more than %d braces", ErrLarge, maxBraces)
	}
	return parseJSON(text)
}

// Metered returns a reader of a request in JSON. The bytes of the request count as in use until end is called. The
// reader fails with [ErrLarge] when many large requests are read at this time.
func (s *Service) Metered(body io.Reader) (read io.Reader, end func()) {
	m := &metered{from: body, service: s}
	return m, func() { s.bytes.Add(-m.counted) }
}

// metered adds the bytes that it reads to the bytes in use.
type metered struct {
	from    io.Reader
	service *Service
	counted int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	weight := int64(n) * jsonWeight
	m.counted += weight
	if m.service.bytes.Add(weight) > m.service.maxBytes && m.counted > smallMessage*jsonWeight {
		return n, fmt.Errorf("%w: many large requests at a time", ErrLarge)
	}
	return n, err
}

func parseJSON(text []byte) ([]byte, error) {
	var m rlsv3.RateLimitRequest
	if err := protojson.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	return proto.Marshal(&m)
}

// ParseCall reads a RateLimitRequest in protobuf's JSON. It refuses requests that the service
// refuses.
func ParseCall(text []byte) (*descriptor.Call, error) {
	if bytes.Count(text, []byte("{")) > maxBraces {
		return nil, fmt.Errorf("%w: more than %d braces", ErrLarge, maxBraces)
	}
	wire, err := parseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("not a RateLimitRequest in JSON: %w", err)
	}
	r := new(request)
	r.decode(wire)
	if r.problem != nil {
		return nil, r.problem
	}
	return &r.in, nil
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
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // an error says that the client has gone
}
