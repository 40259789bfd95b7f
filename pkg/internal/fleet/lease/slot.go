package lease

import "math"

// Slot is the part of one holder as the item keeps it. The hints are for the shares of
// other replicas alone: a wrong one costs fairness.
type Slot struct {
	Seq    uint16 // of the lease write that wrote it; each write that is sent has the next number
	Rate   int    // parts of the rate, 0 to Parts
	Room   int    // parts of the room, 0 to Parts
	Demand int    // hint: demand as a part of the rate, see EncodeDemand; or Wish
	Stock  int    // hint: tokens as a part of the capacity, see EncodeStock
	At     uint8  // hint: time of the plan, in units of 32 ms, modulo 256
}

// Wish as the Demand of a slot asks all holders to return their leases, and not to ask
// for new ones. It holds for wishLasts milliseconds.
const Wish = 1023

const (
	wishLasts = 4000
	steps     = 64       // of a hint for each doubling
	mostCode  = Wish - 1 // of a hint
	onceCode  = 702      // of a demand of once the rate
	atUnit    = 32       // ms
	atAhead   = 16       // units that the clock of another replica may be ahead
)

// EncodeDemand returns the hint for a demand, in parts of the rate: 0, or 1 to 1022 on a
// logarithmic scale from 0.0005 to 32 times the rate, in steps of 1.1 %.
func EncodeDemand(demand float64) int { return encode(demand, onceCode) }

// DecodeDemand returns the demand of a hint, in parts of the rate.
func DecodeDemand(code int) float64 { return decode(code, onceCode) }

// EncodeStock returns the hint for an amount of tokens, in parts of the capacity: 0, or 1
// to 1022 on a logarithmic scale from 0.00002 to the whole, in steps of 1.1 %.
func EncodeStock(stock float64) int { return encode(stock, mostCode) }

// DecodeStock returns the tokens of a hint, in parts of the capacity.
func DecodeStock(code int) float64 { return decode(code, mostCode) }

func encode(x float64, once int) int {
	if !(x > 0) { // also where it is no number
		return 0
	}
	return int(min(max(math.Round(math.Log2(x)*steps)+float64(once), 0), mostCode))
}

func decode(code, once int) float64 {
	if code <= 0 {
		return 0
	}
	return math.Exp2(float64(min(code, mostCode)-once) / steps)
}

// encodeAt returns the hint for a time in Unix milliseconds.
func encodeAt(now int64) uint8 {
	return uint8(now / atUnit & 255) // #nosec G115 -- masked
}

// age returns how many milliseconds before now the slot was planned, by its hint. A slot
// lives for less time than the hint counts.
func (s *Slot) age(now int64) int64 {
	units := encodeAt(now) - s.At
	if units > math.MaxUint8-atAhead {
		return 0
	}
	return int64(units) * atUnit
}

// WishSlot returns the slot of a replica without a lease that asks all holders to return theirs,
// from now on.
func WishSlot(now int64, sequence uint16) Slot {
	return Slot{Seq: sequence, Demand: Wish, At: encodeAt(now)}
}

// wishes reports whether the slot asks for all leases back at a time.
func (s *Slot) wishes(now int64) bool {
	return s.Demand == Wish && s.age(now) < wishLasts
}
