package ratemodel

// Guard is a condition or a rule of the protocol. A run may remove one, to show that
// the rest does not do without it.
type Guard string

// Whole removes nothing.
const Whole Guard = ""

// The guards, each named by the rule that it keeps. Beside them each kind of exact write
// pins n.
const (
	BusyFloor     Guard = "busy write has a floor"
	TakeBound     Guard = "take has a bound"
	TakeOnce      Guard = "take differs from its own id"
	LiftToBound   Guard = "lift goes to its bound"
	CarriedExact  Guard = "lift with carried use is exact"
	ChargeOnce    Guard = "charge pins its own id"
	RefundOnce    Guard = "refund pins its own id"
	PaidSlot      Guard = "charge and refund have an id of their own"
	PaidThisItem  Guard = "ids of another item tell nothing"
	PaidHere      Guard = "charge stays at its item while a copy may land"
	EpochPinned   Guard = "commuting write pins the epoch"
	EpochLine     Guard = "epoch rises with the line"
	EpochRoom     Guard = "epoch rises when room goes"
	EpochTokens   Guard = "epoch rises when tokens come back" //nolint:gosec // no credentials
	EpochLimits   Guard = "epoch rises with the limits"
	ExactEpoch    Guard = "exact write pins the epoch"
	RoomForTokens Guard = "tokens move to where there is room" //nolint:gosec // no credentials
	GivenAtPlan   Guard = "given rate is gone from the plan"
	ServeByAll    Guard = "all candidates have the tokens"
	NewestState   Guard = "newer state stays"
	MonotonicEnd  Guard = "lease ends by monotonic clock"
	WallEnd       Guard = "lease ends by wall clock"
	TermFromSend  Guard = "term starts before the send"
	OneClock      Guard = "one clock for refill and plans"
	HoldKeepsRoom Guard = "hold keeps its room"
	ReapAfterTerm Guard = "reap waits for the term"
	ReapSpent     Guard = "reap counts as spent"
	ChangeAlone   Guard = "change of limits without leases"
	ChangeKeeps   Guard = "change of limits keeps the use"
	SplitAlone    Guard = "split without leases"
	ChildShare    Guard = "child has the tokens of its split"
	ChildOnce     Guard = "child needs a newer epoch"
	RetireAlone   Guard = "retire without leases"
	AbsorbOnce    Guard = "absorb needs the child that it made"
	AbsorbAfter   Guard = "absorb is not before the retirement"
	LateBooked    Guard = "late admission is booked"
	LateOnce      Guard = "late admission is not booked beside its own write"
	LateBack      Guard = "late denial gives back"
	CascadeBack   Guard = "cascade gives back"
)

// pins is the guard that pins a kind of exact write to its state.
func pins(k kind) Guard { return Guard(k + " pins n") }

// Guards are all that a run can remove.
func Guards() []Guard {
	return []Guard{
		BusyFloor, TakeBound, TakeOnce, LiftToBound, CarriedExact,
		ChargeOnce, RefundOnce, PaidSlot, PaidThisItem, PaidHere,
		EpochPinned, EpochLine, EpochRoom, EpochTokens, EpochLimits, ExactEpoch,
		pins(kindMixed), pins(kindLease), pins(kindReturn), pins(kindReap), pins(kindChange),
		pins(kindSplit), pins(kindClear), pins(kindRetire), pins(kindAbsorb),
		RoomForTokens, GivenAtPlan, ServeByAll, NewestState,
		MonotonicEnd, WallEnd, TermFromSend, OneClock, HoldKeepsRoom,
		ReapAfterTerm, ReapSpent, ChangeAlone, ChangeKeeps,
		SplitAlone, ChildShare, ChildOnce, RetireAlone, AbsorbOnce, AbsorbAfter,
		LateBooked, LateOnce, LateBack, CascadeBack,
	}
}
