package limiter

// Request is what one call asks for: takes that are decided all or nothing. A
// request is only read, and may be used for many decisions, also at the same time.
type Request struct {
	Namespace     string // "" = DefaultNamespace
	Takes         []Take // decided together; two takes of the same bucket count as one
	OnUnavailable Policy // what to answer when the store does not; Unset = as stored or configured
	LocalShare    int64  // for Local: thousandths of each limit, 1 to 1000; 0 = as configured

	// Whole has every bucket asked, also when another one is known to deny: the decision has
	// the status of each limit.
	Whole bool

	// Snapshot holds the configured limits to decide by; nil = those in force. See [Limiter.Use].
	Snapshot *Snapshot
}

// Take is one entity's use of one resource.
type Take struct {
	Entity   string   // any bytes
	Resource string   // any bytes
	Parents  []string // ancestors named by the request, nearest first; they win over stored ones
	Limits   *Limits  // the entity's own limits for this take; nil = resolve. Ancestors always resolve theirs
	// LimitsOf names what Limits belong to, such as a plan: their buckets are told
	// apart by it, and so outlive a change of the limits. Takes that share it, an
	// entity and a resource must have the same Limits. "" = by the limits themselves.
	LimitsOf string
	Label    string        // buckets of its own, apart from those of other labels; "" = the ordinary ones
	Consume  []Consumption // what to take, by limit; a name given twice adds up
	Mode     Mode
	Lease    LeasePolicy // of all buckets of the chain; of takes of one bucket what all allow
}

// Consumption is an amount of one limit.
type Consumption struct {
	Limit  string
	Amount int64 // millitokens, 0 to tokenbucket.MaxAmount
}

// Mode says what a take does with its amounts.
type Mode uint8

// The modes of a take.
const (
	// Consume takes the amounts if all of them are there. An amount of 0 is a look:
	// it asks for one whole token and takes none.
	Consume Mode = iota
	// Charge books what was already used, into debt if need be. It is applied
	// whatever the outcome of the other takes, and denies nobody.
	Charge
	// Refund gives back, up to the capacity. It is applied like a charge. What one
	// request refunds and charges to the same limit of a bucket is netted first.
	Refund
)

// Policy says what is answered when the store does not answer in time.
type Policy uint8

// The policies.
const (
	Unset Policy = iota // not said here
	Allow               // admit: availability before exactness; counted and marked
	Deny                // deny
	Local               // decide by a share of the limits, in this process's memory; counted and marked
)

// String returns the policy as a configuration file writes it, "" for Unset.
func (p Policy) String() string {
	switch p {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	case Local:
		return "local"
	case Unset:
		return ""
	default:
		return "unknown"
	}
}
