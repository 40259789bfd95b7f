// Package reservation lets any replica settle what another one reserved.
//
// A request whose cost is known only when it is done reserves an estimate. Its
// answer carries an id, which holds all that a settlement needs: which buckets gave
// how much, under which limits. So nothing is stored for a reservation; only a
// settlement leaves a mark, by which it happens once: see [limiter.Settlements].
//
// # The id
//
// The id is a sealed record: nobody without a key of the [Keyring] can read it, as
// it may hold names of customers, or make or change one. It is text of the
// characters A-Z, a-z, 0-9, '-' and '_', at most [MaxLength] of them, and has one
// spelling:
//
//	base64url( version 1 | key id 4 | nonce 16 | AES-256-GCM(record) | tag 16 )
//
// The key id is the beginning of the key's SHA-256, under a label; the 21 bytes
// before the record are authenticated with it. Each id is sealed under a key of its
// own, HMAC-SHA256(key, label and nonce), so that one key can seal any number of
// them. The nonce is the [Reservation]'s ID.
//
// An id says for itself when it expires and which namespace it is of; whoever
// settles compares the namespace with its own.
//
// # Estimates
//
// Where a request does not say how much it may use, [Estimates] knows what was
// settled before.
package reservation
