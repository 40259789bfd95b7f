package limiter

// Policy is the answer to a request when the store does not answer in time.
type Policy uint8

// The policies.
const (
	Unset Policy = iota // not set here
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
