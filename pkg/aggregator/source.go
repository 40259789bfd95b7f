package aggregator

import (
	"context"
	"errors"
)

var (
	// ErrTrimmed says that the stream does not have the records any more that come next.
	ErrTrimmed = errors.New("the stream has dropped records")
	// ErrExpired says that an iterator is too old. Another one of the same place is good.
	ErrExpired = errors.New("the iterator has expired")
	// ErrGone says that the stream is not there any more, or that the table has none.
	ErrGone = errors.New("the stream is gone")
	// ErrPosition says that a position is not one of the shard.
	ErrPosition = errors.New("the position is not one of the shard")
	// ErrDropped says that the stream has dropped a shard, whole.
	ErrDropped = errors.New("the stream has dropped the shard")
	// ErrConflict says that another process has written a lease.
	ErrConflict = errors.New("another process has written the lease")
)

// Source is a stream.
type Source interface {
	// Shards lists the shards that the stream has. It fails with ErrGone.
	Shards(ctx context.Context) ([]Shard, error)
	// Open returns an iterator of the records of a shard behind a position, or of all that the
	// stream has of it. It fails with ErrTrimmed where records behind the position are gone, and with ErrPosition.
	// It fails with ErrDropped where the stream is there and the shard is not.
	Open(ctx context.Context, shard string, after Sequence) (iterator string, err error)
	// Read returns the next records, which can be none, and the iterator of those behind them; ""
	// = the shard ends. It fails with ErrExpired or ErrTrimmed.
	Read(ctx context.Context, iterator string) (records []Record, next string, err error)
	// Follow finds the stream that took the place of this one, which has ended. move has the source and its
	// leases be those of the other stream; nil = the table has this stream still. Nothing else may be
	// called during move. It fails with ErrGone where the table has no stream that can be read.
	Follow(ctx context.Context) (move func(), err error)
}

// Leases keeps the leases of the shards of a stream.
type Leases interface {
	// List returns all leases. One that cannot be read has a problem, and fails no other.
	List(ctx context.Context) ([]Lease, error)
	// Write replaces a lease, or creates it where before.Beat is 0. It fails with ErrConflict
	// where the stored lease has another fence. Where after has another fence than before, the
	// stored lease must have the beat of before, too.
	Write(ctx context.Context, before, after Lease) error
}
