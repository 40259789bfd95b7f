package ratemodel

// actor is a replica with all of its duties.
type actor struct {
	*replica
	faults
	caller
	taker
	payer
	requester
	leaser
	reaper
	shaper
	changer
}

// newActor returns a replica with its duties.
func newActor(r *replica) actor {
	return actor{
		replica: r, faults: faults{r}, caller: caller{r}, taker: taker{r}, payer: payer{r}, requester: requester{r},
		leaser: leaser{r}, reaper: reaper{r}, shaper: shaper{r}, changer: changer{r},
	}
}
