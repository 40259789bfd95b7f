package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds an answer, in bytes: a page of 1000 entities with their metadata.
const maxAnswer = 256 << 20

// Doer sends requests; *http.Client is one. It adds the credential, if one is needed.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Client is a client of one service. It is safe for concurrent use if its Doer is.
type Client struct {
	doer Doer
	base string
}

// NewClient returns a client of the service whose admin listener is at base, such as
// https://ratelimit:8082.
func NewClient(doer Doer, base string) *Client {
	return &Client{doer: doer, base: strings.TrimSuffix(base, "/")}
}

// ClientOptions are the conditions of a change.
type ClientOptions struct {
	DryRun      bool   // makes every check, and changes nothing
	IfMatch     string // changes only a record with this etag; "" = any
	IfNoneMatch bool   // changes only if there is no record
	Reason      string // why, for the audit: one line of at most 256 characters; "" = none
	AllowNew    bool   // allows names that are new: of namespaces, parents, resources, limits and so on
	// AllowKinds allows new names of these kinds, such as NewParent, without AllowNew.
	AllowKinds []string
}

// Page asks for a part of a list. The zero value asks for the first 100.
type Page struct {
	After string // List.Next of the page before
	Size  int    // most items, 1 to 1000; 0 = 100
}

// errCircle says that a page is followed by itself.
var errCircle = errors.New("the service does not answer like this service: the next page of its list is the page itself")

// Each yields the items of every page that list returns, until the last page or an error, as [Pages] does.
func Each[V any](list func(Page) (*List[V], error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for page, err := range Pages(Page{}, list) {
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			for _, v := range page.Items {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// Pages yields every page that list returns, from the first on, until the last page or an error. It yields an error
// last. A page that is followed by itself is an error: the list would have no end.
func Pages[V any](first Page, list func(Page) (*List[V], error)) iter.Seq2[*List[V], error] {
	return func(yield func(*List[V], error) bool) {
		for p := first; ; {
			page, err := list(p)
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			if page.Next == p.After {
				yield(nil, errCircle)
				return
			}
			p.After = page.Next
		}
	}
}

// Status returns version and store of the service, and the principal of the request.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return send[Status](ctx, c, http.MethodGet, "/v1/status", nil, nil, ClientOptions{})
}

// query returns the parameters that are not empty.
func query(p Page, params map[string]string) url.Values {
	q := url.Values{}
	for name, value := range params {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.After != "" {
		q.Set("after", p.After)
	}
	if p.Size != 0 {
		q.Set("size", strconv.Itoa(p.Size))
	}
	return q
}

// send makes a request and reads its answer.
func send[V any](ctx context.Context, c *Client, method, path string, q url.Values, body any, o ClientOptions) (*V, error) {
	req, err := c.request(ctx, method, path, q, body, o)
	if err != nil {
		return nil, err
	}
	resp, err := c.doer.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer of the service was cut off: %w", err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" is no type of the service
	if resp.StatusCode/100 != 2 {
		return nil, problemIn(resp, kind, text)
	}
	v := new(V)
	if kind != "application/json" {
		return nil, fmt.Errorf("%s does not answer like this service: its answer is %q", req.URL.Redacted(), kind)
	}
	if err := ReadAnswer(bytes.NewReader(text), v); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer like this service", req.URL.Redacted()), err)
	}
	return v, nil
}

// ReadAnswer reads an answer of the service to its end into v, a pointer to a struct. No other JSON is taken for it: it has
// one of the members that each answer of this kind has.
func ReadAnswer(answer io.Reader, v any) error {
	text, err := io.ReadAll(answer)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, ok := members[name]; ok && options == "" {
			return nil
		}
	}
	return fmt.Errorf("its answer is %.200q", text)
}

func (c *Client) request(ctx context.Context, method, path string, q url.Values, body any, o ClientOptions) (*http.Request, error) {
	q = o.query(q)
	target := c.base + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if o.IfMatch != "" {
		req.Header.Set("If-Match", o.IfMatch)
	}
	if o.IfNoneMatch {
		req.Header.Set("If-None-Match", "*")
	}
	return req, nil
}

// query adds the parameters of a change to those of a request, which may be nil.
func (o *ClientOptions) query(q url.Values) url.Values {
	params := map[string]string{"reason": o.Reason, "allowNew": strings.Join(o.AllowKinds, ",")}
	for name, set := range map[string]bool{"dryRun": o.DryRun, "allowNew": o.AllowNew} {
		if set {
			params[name] = "true"
		}
	}
	for name, value := range params {
		if value == "" {
			continue
		}
		if q == nil {
			q = url.Values{}
		}
		q.Set(name, value)
	}
	return q
}

// problemIn returns the problem in an answer, or one made of the answer.
func problemIn(resp *http.Response, kind string, text []byte) error {
	p := &Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode)}
	if kind != ProblemType || json.Unmarshal(text, p) != nil {
		p.Detail = fmt.Sprintf("%.200q, which is no answer of this service", text)
	}
	return p
}

// between adds the bounds of a time to the parameters of a query.
func between(from, to time.Time, params map[string]string) map[string]string {
	for name, at := range map[string]time.Time{"from": from, "to": to} {
		if !at.IsZero() {
			params[name] = at.Format(time.RFC3339Nano)
		}
	}
	return params
}
