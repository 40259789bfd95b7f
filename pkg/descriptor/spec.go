package descriptor

import "github.com/ratelimit/ratelimit/pkg/limiter"

// DomainSpec is a domain as a file gives it, before [Compile].
type DomainSpec struct {
	Path        string   // where it stands in the file, for errors: "domains[0]"
	Domain      string   // not empty; its name in the gateway's configuration
	Namespace   string   // "" = limiter.DefaultNamespace
	DenyUnknown bool     // a descriptor that no rule matches is denied; else it is admitted
	Resources   []string // of takes that have none of their own, see [TakeSpec]
	Rules       []RuleSpec
	Tree        []TreeSpec // of an envoyproxy/ratelimit file; instead of Rules
	Overdraw    Overdraw   // of the Tree
}

// RuleSpec is a rule as a file gives it.
type RuleSpec struct {
	Path          string        // "domains[0].rules[3]"
	Name          string        // unique in the domain; "" = "rule-N", N counted from 1
	Match         []MatchSpec   // at least one
	Open          bool          // other keys may follow, with any value
	Takes         []TakeSpec    // empty when Unlimited or Settle
	Unlimited     bool          // admits the descriptor and takes nothing
	Settle        []ConsumeSpec // what of a reservation is settled; by PerHit only
	Overdraw      bool          // an explicit number of hits above 0 is a charge
	Shadow        bool          // never denies; takes from buckets of its own
	Override      string        // the limit that Descriptor.Limit replaces; "" = the only one consumed
	OnUnavailable limiter.Policy
	LocalShare    int64               // thousandths, see limiter.Request
	Lease         limiter.LeasePolicy // of all buckets that the rule takes from
}

// MatchSpec is what a rule asks of one key. Exactly one of Value, Regex and CIDR
// is used: Regex if not empty, else CIDR if not empty, else Value.
type MatchSpec struct {
	Path     string // "domains[0].rules[3].match.PATH"
	Key      string // without the '?'
	Optional bool
	Value    string // '*' stands for any run of bytes, also none
	Regex    string // RE2; anchored at both ends
	CIDR     []string
}

// TakeSpec is one bucket that a rule takes from.
type TakeSpec struct {
	Path     string // "domains[0].rules[3]" for the flat form, "….takes[0]" in a list
	Entity   string // template
	Resource string // template
	// Resources are those that a Resource with a placeholder may be: names, and patterns
	// in which '*' is any run of bytes. All values of a pattern are one resource, named as
	// the pattern. Other values are [OtherResource]. nil = as the domain says, else
	// any value is a resource of its own.
	Resources []string
	Parents   []string        // templates, nearest first; one whose key is absent is left out
	Plan      string          // template for the name of a plan; "" = none
	Limits    *limiter.Limits // given in the rule; nil = none. Not with Plan
	Consume   []ConsumeSpec   // at least one
	Reserve   bool            // the amounts are a reservation
}

// ConsumeSpec is how much a rule takes from one limit: Constant + PerHit × hits.
type ConsumeSpec struct {
	Limit    string
	Constant int64 // millitokens
	PerHit   int64 // millitokens for each hit
	Estimate *EstimateSpec
}

// EstimateSpec is how much is reserved of a limit for a descriptor that brings no
// number: what the estimator knows, from Min to Max; Max where it knows nothing.
type EstimateSpec struct {
	Min int64 // millitokens, at least 1
	Max int64 // millitokens, at least Min
}

// Problem is one mistake in a specification.
type Problem struct {
	Path string // where, in the words of the file: "domains[0].rules[3].entity"
	Text string // what is wrong, and what would be right
}

// TreeSpec is a descriptor of an envoyproxy/ratelimit file, with those below it.
type TreeSpec struct {
	Path           string // "descriptors[0].descriptors[2]"
	Key            string // not empty
	Value          string // "" = any value; '*' stands for any run of bytes
	Limit          *TreeLimitSpec
	Shadow         bool // shadow_mode
	ShareThreshold bool // all values that match the '*' share one bucket
	Quota          bool // quota_mode: it denies a call only when all others of the call that have it do too
	Children       []TreeSpec
}

// TreeLimitSpec is the rate_limit of a [TreeSpec].
type TreeLimitSpec struct {
	Unit            string // second, minute, hour, day, week, month (30 days) or year (365 days), in any case
	RequestsPerUnit uint32 // 0 denies everything but looks
	Unlimited       bool   // without a Unit
	Name            string // optional; what Replaces of others names
	Replaces        []string
}
