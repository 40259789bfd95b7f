package controlapi

// API has the endpoints of administration.
type API struct {
	cfg      Config
	document []byte
}
