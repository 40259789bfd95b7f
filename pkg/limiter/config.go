package limiter

import "time"

// Defaults of [Config].
const (
	DefaultTimeout       = 15 * time.Millisecond // below the 20 ms that Envoy waits
	DefaultCacheTTL      = 60 * time.Second
	DefaultCacheSize     = 100_000
	DefaultDenyCacheSize = 100_000
)

// Config configures a [Limiter]. Only Store is required.
type Config struct {
	// Store keeps the buckets. The limiter does not close it.
	Store Store
	// Fallback decides for the policy Local while Store does not answer. It should be memory of
	// this process, and of no other limiter; nil = Local denies.
	Fallback Store
	// Timeout is how long one decision waits for a store that is not local; 0 = DefaultTimeout. The
	// store's own attempt continues after it. A store without late decisions counts as unavailable
	// then.
	Timeout time.Duration
	// CacheTTL is how long cached records of a store that is not local are used, also their
	// absence; 0 = DefaultCacheTTL, below 0 = no cache. Changes that the store announces apply at
	// once.
	CacheTTL time.Duration
	// CacheSize is the most records cached; 0 = DefaultCacheSize.
	CacheSize int
	// DenyCacheSize is the most denials cached; 0 = DefaultDenyCacheSize, below 0 = none.
	DenyCacheSize int
}
