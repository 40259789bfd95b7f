package descriptor

import "github.com/ratelimit/ratelimit/pkg/limiter"

// DomainSpec is a domain in the form of a file, before [Compile].
type DomainSpec struct {
	Path        string   // its place in the file, for errors: "domains[0]"
	Domain      string   // not empty; its name in the gateway's configuration
	Namespace   string   // "" = limiter.DefaultNamespace
	DenyUnknown bool     // a descriptor that no rule matches is denied; otherwise it is admitted
	Resources   []string // for takes without a list of their own, see [TakeSpec]
	Body        Body     // of denials
	Rules       []RuleSpec
	Tree        []TreeSpec      // of an envoyproxy/ratelimit file; instead of Rules
	Overdraw    Overdraw        // of the Tree
	Limits      []CallLimitSpec // of a limitador file; instead of Rules
}

// RuleSpec is a rule in the form of a file.
type RuleSpec struct {
	Path          string        // "domains[0].rules[3]"
	Name          string        // unique in the domain; "" = "rule-N", N counted from 1
	Buckets       string        // name of the rule's own buckets; rules with the same one share them. "" = Name
	Match         []MatchSpec   // at least one
	Open          bool          // other keys may follow, with any value
	Takes         []TakeSpec    // empty when Unlimited, Exempt, Deny, Settle or End
	Unlimited     bool          // admits the descriptor and takes nothing
	Exempt        bool          // admits the whole call and takes nothing; not with Shadow
	Deny          *Denial       // denies the descriptor and takes nothing; nil = it does not
	Settle        []ConsumeSpec // the limits of a reservation to settle; by PerHit only
	End           bool          // ends the requests in flight of a reservation, and settles no limit
	Overdraw      bool          // an explicit number of hits above 0 is a charge
	Shadow        bool          // never denies; takes from buckets of its own
	Override      string        // the limit that Descriptor.Limit replaces; "" = the only one consumed
	OnUnavailable limiter.Policy
	LocalShare    int64               // thousandths, see limiter.Request
	Lease         limiter.LeasePolicy // of all buckets that the rule takes from
	Stored        bool                // the store alone may have limits that the rule consumes
}

// Denial is the answer of a rule that denies. The zero Denial is that of a limit.
type Denial struct {
	Status int    // of HTTP, 400 to 599; 0 = 429
	Body   string // a text as Body.Text; "" = that of the domain
}

// MatchSpec is the pattern of a rule for one key. Exactly one of Value, Values, Regex and CIDR is used:
// Regex if not empty, else CIDR if not empty, else Values if not empty, else Value.
type MatchSpec struct {
	Path     string // "domains[0].rules[3].match.PATH"
	Key      string // without the '?'
	Optional bool
	Value    string   // '*' stands for any run of bytes, which may be empty
	Values   []string // one of them matches, each as Value
	Set      string   // name of a set of the file; the set is put into the other fields before [Compile]
	Regex    string   // RE2; anchored at both ends
	CIDR     []string
}

// TakeSpec is one bucket that a rule takes from.
type TakeSpec struct {
	Path     string // "domains[0].rules[3]" for the flat form, "….takes[0]" in a list
	Entity   string // template
	Resource string // template
	// Resources are the resources that a Resource with a placeholder may give: names, and patterns
	// in which '*' is any run of bytes. All values of a pattern are one resource, with the pattern
	// as its name. Other values are [OtherResource]. nil = the list of the domain; without one, any
	// value is a resource of its own.
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
	Priced   bool // PerHit is a price of the file, which is put there before [Compile]
}

// EstimateSpec is how much of a limit is reserved for a descriptor without a number: the estimate,
// from Min to Max, or Max without an estimate.
type EstimateSpec struct {
	Min int64 // millitokens, at least 1
	Max int64 // millitokens, at least Min
}

// Problem is one mistake in a specification.
type Problem struct {
	Path string // in the terms of the file: "domains[0].rules[3].entity"
	Text string // the mistake, and how to correct it
}

// TreeSpec is a descriptor of an envoyproxy/ratelimit file, with the descriptors below it.
type TreeSpec struct {
	Path           string // "descriptors[0].descriptors[2]"
	Key            string // not empty
	Value          string // "" = any value; '*' stands for any run of bytes
	Limit          *TreeLimitSpec
	Shadow         bool // shadow_mode
	ShareThreshold bool // all values that match the '*' share one bucket
	Quota          bool // quota_mode: it denies a call only if all others of the call with quota_mode are over too
	// Metadata is that of answers, in the types of encoding/json and integers; nil = none.
	Metadata map[string]any
	Children []TreeSpec
}

// TreeLimitSpec is the rate_limit of a [TreeSpec].
type TreeLimitSpec struct {
	Unit            string // second, minute, hour, day, week, month (30 days) or year (365 days), in any case
	RequestsPerUnit uint32 // 0 denies everything but peeks
	Unlimited       bool   // without a Unit
	Name            string // optional; for Replaces of others
	Replaces        []string
}

// CallLimitSpec is a limit of a limitador file. It applies to a call if all conditions are true, and each variable has
// a value. Each combination of values has a bucket.
type CallLimitSpec struct {
	Path       string   // "limits.yaml:[3]"
	Name       string   // in answers and metrics; "" = none
	ID         string   // "" = none
	MaxValue   int64    // hits in so many seconds, 0 to limiter.MaxTokens; 0 denies everything
	Seconds    int64    // 1 to 366 days
	Conditions []string // in CEL, see celExpression
	Variables  []string // likewise
}

// Overdraw says whether an explicit number of hits above 0 is a charge to the descriptors of an
// envoyproxy/ratelimit file. That protocol does not mark a charge after the response: it looks like
// a request for the same number. A charge is taken into debt. It answers OVER_LIMIT when it is more
// than the tokens left. A take that is denied costs nothing.
type Overdraw uint8

// The settings of Overdraw.
const (
	// OverdrawAuto charges if the same limit was asked in the last [AskedWithin] with an explicit 0
	// or without a number. So one request alone is never a charge.
	OverdrawAuto   Overdraw = iota
	OverdrawNever           // an ordinary take
	OverdrawAlways          // a charge
)
