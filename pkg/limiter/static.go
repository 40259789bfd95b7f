package limiter

// Static holds the limits and entities that a configuration file gives. At each
// level what is stored wins over it. It holds for every namespace.
type Static struct {
	System        *Limits
	Resources     map[string]*Limits
	Entities      map[string]StaticEntity // by ID
	OnUnavailable Policy                  // default Allow
	LocalShare    int64                   // for Local, thousandths of each limit, 1 to 1000; default 1000
}

// StaticEntity is an entity of a configuration file.
type StaticEntity struct {
	Parent  string
	Cascade bool
	Limits  map[string]*Limits // by resource, or DefaultResource
}
