package config

import (
	"errors"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const day = 24 * time.Hour

// maxAmount bounds the amount that one call takes: the capacity of the largest possible bucket.
const maxAmount = limiter.MaxTokens * limiter.Milli

// key is a key of an object: its name, its line in docs/configuration.md, and its value.
func key(name, doc string, value yamlcfg.Schema) yamlcfg.Key {
	return yamlcfg.Key{Name: name, Doc: doc, Schema: value}
}

// keys are a mapping of known keys, none of which must be there.
func keys(all ...yamlcfg.Key) yamlcfg.Object { return yamlcfg.Object{Keys: all} }

// local says how to decide while the store is unavailable.
func local(share *int64) yamlcfg.Schema {
	return keys(key("share", "this process's share of each limit: 0.25 for four replicas", yamlcfg.Thousandths(share, 1, 1000)))
}

func policy(out *limiter.Policy) yamlcfg.Schema {
	return yamlcfg.OneOf(out, yamlcfg.As("allow", limiter.Allow), yamlcfg.As("deny", limiter.Deny), yamlcfg.As("local", limiter.Local))
}

// overdraw says when a hits_addend above 0 is a charge.
func overdraw(out *descriptor.Overdraw) yamlcfg.Schema {
	return yamlcfg.OneOf(out, yamlcfg.As("auto", descriptor.OverdrawAuto), yamlcfg.As("never", descriptor.OverdrawNever), yamlcfg.As("always", descriptor.OverdrawAlways))
}

// limitName is the name of a limit.
func limitName(out *string) yamlcfg.Schema {
	name := yamlcfg.Name(out)
	return yamlcfg.Scalar{Of: *name.Shape(), Read: func(n yamlcfg.Node) {
		name.Decode(n)
		if err := validLimitName(*out); err != nil && *out != "" {
			n.Failf("%s", err)
			*out = ""
		}
	}}
}

// validLimitName returns the mistake in the name of a limit.
func validLimitName(name string) error {
	if err := limiter.ValidateLimitName(name); err != nil {
		return errors.New(reason(err))
	}
	return nil
}

// reason returns the text of an error of the domain without the text of its kind.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), limiter.ErrInvalid.Error()+": ")
}

// listed is a list of resources. It must not be empty: an empty list could mean all or none.
func listed(out *[]string) yamlcfg.Schema {
	names := yamlcfg.Names(out)
	return yamlcfg.Scalar{Of: *names.Shape(), Read: func(n yamlcfg.Node) {
		if n.IsList() && n.Size() == 0 {
			n.Failf("is empty; name the resources, or leave it out to let every value be one")
			return
		}
		names.Decode(n)
	}}
}
