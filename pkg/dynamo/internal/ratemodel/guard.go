package ratemodel

// Guard is a condition or a rule of the protocol. A run may remove one, to show that
// the rest does not do without it.
type Guard string

// Whole removes nothing.
const Whole Guard = ""

// The guards, each named by the rule that it keeps.
const (
	BusyFloor      Guard = "busy write has a floor"
	TakeBound      Guard = "take has a bound"
	TakeLine       Guard = "take pins the line"
	TakeRoom       Guard = "take holds the room"
	LiftToBound    Guard = "lift goes to its bound"
	ChargeOnce     Guard = "charge pins its own id"
	RefundOnce     Guard = "refund pins its own id"
	PaidSlot       Guard = "charge and refund have an id of their own"
	GrowLine       Guard = "grow pins the line"
	GrowFloor      Guard = "grow has a floor"
	PullBound      Guard = "pull has a bound"
	SlotPinned     Guard = "lease write pins its slot"
	TokensWithRoom Guard = "tokens go back with their room" //nolint:gosec // no credentials
	RoomWithTokens Guard = "room moves with its tokens"
	RateFromReply  Guard = "new rate counts from the reply"
	RoomFromReply  Guard = "new room counts from the reply"
	GivenAtPlan    Guard = "given rate is gone from the plan"
	ServeByAll     Guard = "all candidates have the tokens"
	NewestState    Guard = "newer state stays"
	MonotonicEnd   Guard = "lease ends by monotonic clock"
	WallEnd        Guard = "lease ends by wall clock"
	TermFromSend   Guard = "term starts before the send"
	OneClock       Guard = "one clock for refill and plans"
	HoldKeepsRoom  Guard = "hold keeps its room"
	ShrinkDeficit  Guard = "shrink pins v"
	ShrinkLine     Guard = "shrink pins the line"
	ReapAfterTerm  Guard = "reap waits for the term"
	ReapSpent      Guard = "reap counts as spent"
	ReapID         Guard = "reap pins the id"
	ReapDeficit    Guard = "reap pins v"
	ReapLine       Guard = "reap pins the line"
	ChangeAlone    Guard = "change of limits without leases"
	ChangeKeeps    Guard = "change of limits keeps the tokens"
	ChangeDeficit  Guard = "change of limits pins v"
	ChangeVersion  Guard = "write pins the version"
	SplitAlone     Guard = "split without leases"
	SplitDeficit   Guard = "split pins v"
	ChildShare     Guard = "child has the tokens of its split"
	ChildOnce      Guard = "child needs a newer epoch"
	EpochPinned    Guard = "write pins the epoch"
	RetireAlone    Guard = "retire without leases"
	RetireDeficit  Guard = "retire pins v"
	AbsorbOnce     Guard = "absorb needs a newer child"
	AbsorbDeficit  Guard = "absorb pins v"
	AbsorbAfter    Guard = "absorb is not before the retirement"
)

// Guards are all that a run can remove.
func Guards() []Guard {
	return []Guard{
		BusyFloor, TakeBound, TakeLine, TakeRoom, LiftToBound, ChargeOnce, RefundOnce, PaidSlot,
		GrowLine, GrowFloor, PullBound, SlotPinned, TokensWithRoom, RoomWithTokens,
		RateFromReply, RoomFromReply, GivenAtPlan, ServeByAll, NewestState,
		MonotonicEnd, WallEnd, TermFromSend, OneClock, HoldKeepsRoom,
		ShrinkDeficit, ShrinkLine,
		ReapAfterTerm, ReapSpent, ReapID, ReapDeficit, ReapLine,
		ChangeAlone, ChangeKeeps, ChangeDeficit, ChangeVersion,
		SplitAlone, SplitDeficit, ChildShare, ChildOnce, EpochPinned,
		RetireAlone, RetireDeficit, AbsorbOnce, AbsorbDeficit, AbsorbAfter,
	}
}
