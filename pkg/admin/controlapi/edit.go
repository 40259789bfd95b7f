package controlapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// edit changes the record of ref, with the preconditions and the dryRun of the request. after is
// the record to store, or an empty one to delete. Its switch must be off, or that of the stored
// record. bodyTag is the member etag of the body, "" for none.
func (c *call) edit(ref limiter.Ref, after limiter.Record, bodyTag string) (limiter.Edited, bool, error) {
	dry, err := c.flag("dryRun")
	if err != nil {
		return limiter.Edited{}, false, err
	}
	done, err := c.store.Edit(c.ctx(), c.now(), c.namespace(), limiter.Edit{
		Ref: ref, DryRun: dry,
		Change: func(before limiter.Record) (limiter.Record, error) {
			if after.Disabled && !before.Disabled {
				return after, invalid("the member disabled is true, and this is enabled: disable it with PUT of %s/disabled/...", namespacePath)
			}
			return after, c.precondition(before, bodyTag)
		},
	})
	return done, dry, err
}

// precondition compares the stored record with If-Match, If-None-Match and the etag of the body.
func (c *call) precondition(stored limiter.Record, bodyTag string) error {
	tag := etagOf(stored)
	switch match, none := c.r.Header.Get("If-Match"), c.r.Header.Get("If-None-Match"); {
	case match == "*" && tag == "":
		return problem(http.StatusPreconditionFailed, api.Precondition, "there is no record here, and If-Match requires one")
	case match != "" && match != "*" && !contains(match, tag):
		return stale("If-Match", match, tag)
	case none != "" && none != "*":
		return invalid("If-None-Match is %.100q; a change takes * alone, for a record that must not exist yet", none)
	case none == "*" && tag != "":
		return problem(http.StatusPreconditionFailed, api.Precondition, "a record is stored here already, with the etag "+tag)
	case bodyTag != "" && bodyTag != tag:
		return stale("the member etag", bodyTag, tag)
	}
	return nil
}

// contains reports whether a list of etags has one.
func contains(list, tag string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if tag != "" && strings.TrimSpace(each) == tag {
			return true
		}
	}
	return false
}

func stale(where, got, stored string) error {
	if stored == "" {
		stored = "no record"
	}
	return problem(http.StatusPreconditionFailed, api.Precondition, fmt.Sprintf("%s is %.100s, and the stored record has %s: read it again", where, got, stored))
}

// etagOf identifies a stored record; "" without one. That of an entity never returns, that of
// limits does when the same limits do.
func etagOf(r limiter.Record) string {
	switch {
	case !r.Stored() || r.Entity != nil && r.Entity.Version == 0:
		return ""
	case r.Entity != nil:
		return fmt.Sprintf(`"v%d"`, r.Entity.Version)
	}
	tag := fmt.Sprintf("%016x", r.Limits.Hash())
	if r.OnUnavailable != limiter.Unset {
		tag += "-" + r.OnUnavailable.String()
	}
	if r.Alone {
		tag += "-alone"
	}
	if r.Budgets.Len() > 0 {
		tag += fmt.Sprintf("-%016x", r.Budgets.Hash())
	}
	return `"` + tag + `"`
}

// changeOf returns the outcome of an edit as JSON.
func changeOf[V any](c *call, done limiter.Edited, dry bool, resource func(limiter.Record) *V) api.Change[V] {
	change := api.Change[V]{Result: api.Changed, DryRun: dry, InMemory: !c.durable}
	if done.Before.Stored() {
		change.Before = resource(done.Before)
	}
	if done.After.Stored() {
		after := done.After
		if e := after.Entity; e != nil && dry && done.Changed { // a dry run gets no version
			draft := *e
			draft.Version = 0
			after.Entity = &draft
		}
		change.After = resource(after)
		c.etag = etagOf(after)
	}
	switch {
	case !done.Changed:
		change.Result = api.Unchanged
	case change.After == nil:
		change.Result = api.Deleted
	case change.Before == nil:
		change.Result = api.Created
		if !dry {
			c.code = http.StatusCreated
		}
	}
	return change
}

// get reads the record of ref.
func (c *call) get(ref limiter.Ref) (limiter.Record, error) {
	r, err := c.store.Get(c.ctx(), c.namespace(), ref)
	c.etag = etagOf(r)
	return r, err
}
