// Package reservation lets any replica settle what another one reserved.
//
// A request whose cost is known only when it is done reserves an estimate. Its
// answer carries an id, which holds all that a settlement needs: which buckets gave
// how much, under which limits. So nothing is stored for a reservation; only a
// settlement leaves a mark, by which it happens once.
//
// # The id
//
// The id is a sealed record: nobody without a key of the [Keyring] can read it, as
// it may hold names of customers, or make or change one. It is text of the
// characters A-Z, a-z, 0-9, '-' and '_', at most [MaxLength] of them:
//
//	base64url( version 1 | key id 4 | nonce 16 | AES-256-GCM(record) )
//
// Each id is sealed under a key of its own, HMAC-SHA256(key, nonce), so that one key
// can seal any number of them.
//
// # Estimates
//
// Where a request does not say how much it may use, [Estimates] knows what was
// settled before.
package reservation
