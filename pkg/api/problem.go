package api

import "fmt"

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// Problem is an error in the form of RFC 9457.
type Problem struct { //nolint:errname // the name in RFC 9457
	Type   Kind   `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"` // of HTTP
	Detail string `json:"detail"` // the place of the mistake, and how to correct it
	// Choices are the buckets that a request of kind Ambiguous may mean.
	Choices []Bucket `json:"choices,omitempty"`
	// Booked are the amounts of a top-up of kind Full that would be booked up to the capacity, and
	// cut. Nothing was booked.
	Booked []Booking `json:"booked,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail) }

// Kind is the type of a problem, a URI that does not change.
type Kind string

// The kinds of problems.
const (
	Invalid      Kind = "urn:ratelimit:problem:invalid"      // can never succeed
	Unauthorized Kind = "urn:ratelimit:problem:unauthorized" // no known credential
	Forbidden    Kind = "urn:ratelimit:problem:forbidden"    // the role does not suffice
	NotFound     Kind = "urn:ratelimit:problem:not-found"
	Method       Kind = "urn:ratelimit:problem:method"       // the path does not have the method
	Precondition Kind = "urn:ratelimit:problem:precondition" // the etag is not that of the stored record
	State        Kind = "urn:ratelimit:problem:state"        // the state of the namespace does not allow it
	Ambiguous    Kind = "urn:ratelimit:problem:ambiguous"    // several buckets are meant
	Full         Kind = "urn:ratelimit:problem:full"         // the capacity has no room for a part of a top-up
	NoRoom       Kind = "urn:ratelimit:problem:no-room"      // a bucket would have more limits than it has room for
	Reused       Kind = "urn:ratelimit:problem:reused"       // the text of once was used for another bucket
	TooLarge     Kind = "urn:ratelimit:problem:too-large"
	MediaType    Kind = "urn:ratelimit:problem:media-type"
	Unsupported  Kind = "urn:ratelimit:problem:unsupported" // the store of this service cannot do it
	Unavailable  Kind = "urn:ratelimit:problem:unavailable" // nothing was applied
	Uncertain    Kind = "urn:ratelimit:problem:uncertain"   // may have been applied
)
