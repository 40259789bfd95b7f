package controlapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// call is one request.
type call struct {
	r       *http.Request
	query   url.Values
	store   Store
	durable bool // a change survives the end of the process
	now     func() time.Time
	code    int    // of the answer; 0 = 200
	etag    string // of the answer; "" = none
}

// didYouMean suggests the closest known name, or lists all of them.
func didYouMean(name string, known []string) string {
	if near := limiter.ClosestName(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return "; there are none here"
	}
	return "; there are " + strings.Join(known, ", ")
}

func (c *call) ctx() context.Context { return c.r.Context() }

func (c *call) namespace() string { return c.r.PathValue("namespace") }

// flag reads a parameter that is true, false or absent.
func (c *call) flag(name string) (bool, error) {
	switch c.query.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalid("the parameter %s is %.100q; it must be true or false", name, c.query.Get(name))
}

// page reads the parameters of a page.
func (c *call) page() (limiter.Page, error) {
	p := limiter.Page{After: c.query.Get("after")}
	var err error
	p.Size, err = c.size(limiter.MaxPage, 0)
	return p, err
}

// size reads the parameter size, 1 to most. Without it the size is another one.
func (c *call) size(most, without int) (int, error) {
	text := c.query.Get("size")
	if text == "" {
		return without, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("the parameter size is %.100q; it must be 1 to %d", text, most)
	}
	return n, nil
}

// listOf returns a page of records as JSON, or the error of its read.
func listOf[S, V any](page limiter.PageOf[S], err error, of func(*S) V) (api.List[V], error) {
	if err != nil {
		return api.List[V]{}, err
	}
	list := api.List[V]{Items: make([]V, 0, len(page.Items)), Next: page.Next}
	for i := range page.Items {
		list.Items = append(list.Items, of(&page.Items[i]))
	}
	return list, nil
}

// decode reads the body into v, a pointer to a struct. It refuses members that v does not have.
func (c *call) decode(v any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, api.MediaType, "send JSON, with the header Content-Type: application/json")
	}
	body, err := io.ReadAll(c.r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(http.StatusRequestEntityTooLarge, api.TooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit))
	}
	switch {
	case err != nil:
		return invalid("the body could not be read: %v", err)
	case !utf8.Valid(body):
		return invalid("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return invalid("the body: %s", mistake(err, reflect.TypeOf(v).Elem()))
	}
	if dec.More() {
		return invalid("the body has more than one value")
	}
	if name, twice := repeated(json.NewDecoder(bytes.NewReader(body))); twice {
		return invalid("the body has the member %.100q twice in one object: keep one", name)
	}
	return nil
}

// repeated returns the name of a member that an object in the next value has twice. The value is valid.
func repeated(dec *json.Decoder) (name string, twice bool) {
	begin, _ := dec.Token()
	kind, nested := begin.(json.Delim)
	if !nested {
		return "", false
	}
	members := make(map[string]bool)
	for dec.More() {
		if kind == '{' {
			member, _ := dec.Token()
			name, _ = member.(string)
			if members[name] {
				return name, true
			}
			members[name] = true
		}
		if name, twice := repeated(dec); twice {
			return name, true
		}
	}
	_, _ = dec.Token() // its end
	return "", false
}

// inJSON returns the JSON type for values of a kind.
func inJSON(k reflect.Kind) string {
	forms := map[reflect.Kind]string{
		reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "an array", reflect.String: "text", reflect.Bool: "true or false",
	}
	return cmp.Or(forms[k], "a number")
}

// mistake describes the mistake in a body of a type, with the closest known member.
func mistake(err error, body reflect.Type) string {
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s is of type %s; it must be %s", cmp.Or(wrong.Field, "it"), wrong.Value, inJSON(wrong.Type.Kind()))
	}
	if !unknown {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	known := make([]string, 0, body.NumField())
	for field := range body.Fields() {
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known = append(known, member)
	}
	if text, err := strconv.Unquote(name); err == nil {
		name = text
	}
	return fmt.Sprintf("unknown member %.100q%s", name, didYouMean(name, known))
}

// errNoStore refuses a request that needs a store with control.
func errNoStore() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "the store of this service has no administration")
}

// time reads a parameter that is a time, or absent.
func (c *call) time(name string) (time.Time, error) {
	text := c.query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid("the parameter %s is %.100q; it must be a time such as 2026-11-22T09:00:00Z", name, text)
	}
	return at, nil
}
