package controlapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// callTime bounds a request. It is longer than any change takes, and leaves time to write the
// answer within [admin.ControlTimeout].
const callTime = 25 * time.Second

// handler answers the requests of an endpoint.
func (a *API) handler(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), callTime)
		defer stop()
		c := &call{r: r.WithContext(ctx), store: a.cfg.Store, durable: !a.cfg.InMemory, now: a.cfg.Now}
		answer, err := c.answer(e) //nolint:contextcheck // the call has the context
		if err != nil {
			admin.WriteProblem(w, problemOf(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if c.etag != "" {
			w.Header().Set("ETag", c.etag)
		}
		if c.code != 0 {
			w.WriteHeader(c.code)
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(answer) // an error says that the client has gone
	})
}

func (c *call) answer(e endpoint) (any, error) {
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return nil, invalid("the query is not well formed: %v", err)
	}
	if err := c.checkQuery(e.query); err != nil {
		return nil, err
	}
	if err := c.takeReason(); err != nil {
		return nil, err
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if len(c.r.Header.Values(name)) > 0 && strings.TrimSpace(c.r.Header.Get(name)) == "" {
			return nil, invalid("the header %s is empty: leave it out, or give an etag or *", name)
		}
	}
	if e.bare && (c.r.Header.Get("If-Match") != "" || c.r.Header.Get("If-None-Match") != "") {
		return nil, invalid("this request takes no If-Match and no If-None-Match: a repetition changes nothing more")
	}
	if c.store == nil && strings.Contains(e.path, "{namespace}") {
		return nil, errNoStore()
	}
	return e.run(c)
}

// checkQuery refuses parameters that the endpoint does not have, and repeated ones.
func (c *call) checkQuery(known []param) error {
	names := make([]string, len(known))
	for i, p := range known {
		names[i] = p.name
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		switch values := c.query[name]; {
		case !slices.Contains(names, name):
			return invalid("unknown parameter %.100q%s", name, didYouMean(name, names))
		case len(values) > 1:
			return invalid("the parameter %s is given %d times", name, len(values))
		}
	}
	return nil
}

// takeReason gives the changes of the request their reason.
func (c *call) takeReason() error {
	text := c.query.Get(reasonParam)
	if err := limiter.CheckReason(text); err != nil {
		return err
	}
	c.r = c.r.WithContext(limiter.WithReason(c.ctx(), text))
	return nil
}
