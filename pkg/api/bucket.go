package api

// Bucket is a bucket in use, and its balances.
type Bucket struct {
	Entity   Name          `json:"entity"`
	Resource Name          `json:"resource"`
	Variant  string        `json:"variant,omitempty"` // of a bucket with limits of a rule, a plan or a call; absent = the ordinary one
	Limits   []BucketLimit `json:"limits"`
}

// BucketLimit is one limit of a bucket.
type BucketLimit struct {
	Name  string `json:"name"`
	Limit Limit  `json:"limit"`
	// Available is the balance; below zero is debt. Absent of an unlimited limit.
	Available *Tokens `json:"available,omitempty"`
	// Leased is how many tokens replicas of a fleet have on lease besides, at most. Absent = none.
	Leased Tokens `json:"leased,omitempty"`
}

// BucketChange is the body of a change of balances.
type BucketChange struct {
	Entity   Name    `json:"entity"`
	Resource Name    `json:"resource"`
	Variant  string  `json:"variant,omitempty"` // absent = the ordinary bucket
	Limit    string  `json:"limit,omitempty"`   // absent = every limit of the bucket
	Tokens   *Tokens `json:"tokens,omitempty"`  // not of a reset
	Once     string  `json:"once,omitempty"`    // of changes with the same text in a day one is made
}
