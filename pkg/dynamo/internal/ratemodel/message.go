package ratemodel

// message is a write on its way to the store, or a reply on its way back.
type message struct {
	from, life int
	write      *write
	lost       bool // the reply never arrives
	reply      bool
	applied    bool
	image      item
	due        int64 // true time before which it does not arrive
	sent       int64
}
