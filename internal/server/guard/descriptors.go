package guard

import "math"

// Shares is how many connections each listener may have. They leave a part of the process's file
// descriptors for its files, its store and its administration.
type Shares struct {
	GRPC, HTTP, Admin int
}

// MaxHTTP is the most connections for HTTP, and for administration on TCP: 1024.
const MaxHTTP = 1024

// Share returns the shares of that many descriptors, 0 = no limit. wanted is the number of gRPC
// connections if there are enough.
func Share(descriptors uint64, wanted int) Shares {
	if descriptors == 0 || descriptors > math.MaxInt32 {
		descriptors = math.MaxInt32
	}
	all := int(descriptors) // #nosec G115 -- at most MaxInt32
	spare := max(all/8, 24)
	http := min(max(all/16, 4), MaxHTTP)
	return Shares{GRPC: max(min(all-spare-2*http, wanted), 1), HTTP: http, Admin: http}
}
