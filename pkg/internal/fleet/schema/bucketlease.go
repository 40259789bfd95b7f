package schema

import "encoding/binary"

// MaxLeases is the greatest number of leases on one item.
const MaxLeases = 64

// Lease is the lease of one replica, as the item has it. Demand, Stock and At are hints
// for the other holders, in codes of package lease.
type Lease struct {
	Replica  uint32
	Sequence uint16 // of the replica's lease writes on this item; rises by one with each, and wraps around
	Rate     int    // parts of the rate, 0 to Parts
	Room     int    // parts of the room, 0 to Parts
	Demand   int    // 0 to MaxHint
	Stock    int    // 0 to MaxHint
	At       uint8
}

// Holds reports whether parts are out on the lease. A slot without parts asks for leases, and nil is none.
func (l *Lease) Holds() bool { return l != nil && l.Rate+l.Room > 0 }

const (
	// leaseSize is how many bytes a lease takes in attribute ls. 4 bytes are of the
	// replica, 2 of the sequence and 1 of the time. Rate, room, demand and stock have
	// 10 bits each.
	leaseSize = 12
	leaseBits = 10
	// MaxHint is the greatest Demand and Stock.
	MaxHint = 1<<leaseBits - 1
)

// appendLease appends a lease as ls holds it.
func appendLease(to []byte, l *Lease) []byte {
	to = binary.BigEndian.AppendUint32(to, l.Replica)
	to = binary.BigEndian.AppendUint16(to, l.Sequence)
	var n uint64
	for _, field := range [...]int{l.Rate, l.Room, l.Demand, l.Stock} {
		n = n<<leaseBits | uint64(field&MaxHint) // #nosec G115 -- ten bits
	}
	to = append(to, byte(n>>32))                                 // #nosec G115 -- the upper 8 of 40 bits
	to = binary.BigEndian.AppendUint32(to, uint32(n&0xffffffff)) // #nosec G115 -- the lower 32
	return append(to, l.At)
}

// readLease undoes appendLease, of leaseSize bytes.
func readLease(from []byte) Lease {
	n := uint64(from[6])<<32 | uint64(binary.BigEndian.Uint32(from[7:]))
	field := func(i int) int { return int(n >> (i * leaseBits) & MaxHint) } // #nosec G115 -- ten bits
	return Lease{
		Replica: binary.BigEndian.Uint32(from), Sequence: binary.BigEndian.Uint16(from[4:]),
		Rate: field(3), Room: field(2), Demand: field(1), Stock: field(0), At: from[11],
	}
}
