package config

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Envoyproxy is the settings for files of envoyproxy/ratelimit, under envoyproxy. Their defaults are those of that
// service.
type Envoyproxy struct {
	rls.FileOptions

	NeedsDomain  bool // without a domain in force the service is not healthy
	MergeDomains bool // files with one domain are one list of descriptors
}

func (e *Envoyproxy) schema() yamlcfg.Schema {
	h := &e.Headers
	named := yamlcfg.Object{Title: "envoyproxy.headers", Keys: []yamlcfg.Key{
		key("limit", "name of the header", headerName(&h.Limit)), key("remaining", "name of the header", headerName(&h.Remaining)),
		key("reset", "name of the header", headerName(&h.Reset)),
	}}.Then(func(yamlcfg.Node, bool) { h.SetDefaults() })
	return keys(
		key("headers", "headers for such files: `ratelimit`, those of that service; a mapping with their names; `own`, those of `headers`", yamlcfg.Either{Mapping: named, Other: e.words()}),
		key("metadata", "dynamic metadata of answers: `own`, as of rules; `rules`, the entries and `metadata` of the rules, as that service sends them", yamlcfg.OneOf(&e.Metadata,
			yamlcfg.As("own", rls.OwnMetadata), yamlcfg.As("none", rls.NoMetadata), yamlcfg.As("rules", rls.RulesMetadata))),
		key("shadow_mode", "admits all calls; statuses have the codes of enforced limits", yamlcfg.Bool(&e.Shadow)),
		key("quota_mode", "each descriptor is one of `quota_mode`; one without a limit is not over", yamlcfg.Bool(&e.Quota)),
		key("near_limit", "part of a limit from which hits count as near it, in metrics", yamlcfg.Thousandths(&e.Near, 1, 1000)),
		key("needs_domain", "`/healthcheck` and the health of `ratelimit` over gRPC fail while no domain is in force", yamlcfg.Bool(&e.NeedsDomain)),
		key("merge_domains", "files with the same domain are one list of descriptors", yamlcfg.Bool(&e.MergeDomains)),
	)
}

// words are the settings of headers that are a word.
func (e *Envoyproxy) words() yamlcfg.Schema {
	const none, theirs, own = 0, 1, 2
	var word int
	of := yamlcfg.OneOf(&word, yamlcfg.As("none", none), yamlcfg.As("ratelimit", theirs), yamlcfg.As("own", own))
	return yamlcfg.Scalar{Of: *of.Shape(), Read: func(n yamlcfg.Node) {
		of.Decode(n)
		e.OwnHeaders = word == own
		e.Headers = rls.FileHeaders{}
		if word == theirs {
			e.Headers.SetDefaults()
		}
	}}
}

// headerName is the name of a response header.
func headerName(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "."}, Read: func(n yamlcfg.Node) {
		yamlcfg.Name(out).Decode(n)
		if err := CheckHeaderName(*out); *out != "" && err != nil {
			n.Failf("%s", err)
		}
	}}
}

// CheckHeaderName refuses what is no name of an HTTP header.
func CheckHeaderName(name string) error {
	if name == "" {
		return errors.New("the name of a header must not be empty")
	}
	const special = "!#$%&'*+-.^_`|~"
	for _, c := range name {
		letter, digit := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
		if !letter && !digit && !strings.ContainsRune(special, c) {
			return fmt.Errorf("%.100q is no name of a header: it has letters, digits and any of %s, such as %s", name, special, http.CanonicalHeaderKey("ratelimit-limit"))
		}
	}
	return nil
}
