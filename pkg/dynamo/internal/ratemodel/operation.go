package ratemodel

// verdict is the answer of the store to a write, or of a replica to its caller.
type verdict int

const (
	open verdict = iota
	yes
	no
)

// operation is one request: a take, a charge or a refund. It counts once.
type operation struct {
	kind    kind
	item    int
	tokens  [maxLimits]int64 // whole tokens that the centre is asked for
	charged [maxLimits]int64 // of an exact take: whole tokens that it charges besides
	held    [maxLimits]int64 // whole tokens that the own lease keeps for it
	holder  *holder
	at      int64 // the planner's clock
	planned int   // commits before the plan
	commit  int   // number of the commit, 0 before
	commits int

	life   int // of the replica that asked
	write  *write
	answer verdict    // of the store
	told   verdict    // to the caller: late, it is before the answer
	other  *operation // of a cascade: both pass, or none
	remedy *operation // the charge or the refund that makes up for a wrong guess
	debt   bool       // it is such a remedy
	id     int64      // of a charge or a refund: the same when it is planned anew
	pinned int64      // and the id that it replaces
	epoch  int64      // and the epoch of the item
	birth  int64      // and the item: one that was made anew has other ids
	unsure bool       // its outcome cannot be found any more
}
