package api

import (
	"context"
	"net/http"
)

// TopOf selects the limits of a top. The zero value selects the 20 with the most denials.
type TopOf struct {
	By        string // TopDenied, TopBusiest or TopShadow; "" = TopDenied
	Namespace string // "" = every namespace
	Resource  Name
	Limit     string // name of limits; "" = every limit
	Size      int    // most items, 1 to 1000; 0 = 20
	Fleet     bool   // of all replicas: the sums of at most 20 rows that each other one has reported
}

// Top returns the entities with the most denials, or the most decisions, in the last minute on the
// answering replica, or on all.
func (c *Client) Top(ctx context.Context, of TopOf) (*Top, error) {
	q := query(Page{Size: of.Size}, map[string]string{"by": of.By, "namespace": of.Namespace, "resource": string(of.Resource), "limit": of.Limit})
	if of.Fleet {
		q.Set("fleet", "true")
	}
	return send[Top](ctx, c, http.MethodGet, "/v1/top", q, nil, ClientOptions{})
}

// Decisions returns the number of descriptors that the answering replica has decided.
func (c *Client) Decisions(ctx context.Context) (*Decisions, error) {
	return send[Decisions](ctx, c, http.MethodGet, "/v1/decisions", nil, nil, ClientOptions{})
}

// Fleet returns the state, the decisions of the last half hour and the events of all replicas.
func (c *Client) Fleet(ctx context.Context) (*Fleet, error) {
	return send[Fleet](ctx, c, http.MethodGet, "/v1/fleet", nil, nil, ClientOptions{})
}
