// Package reservation lets any replica settle a reservation of another one.
//
// A request whose cost is known only when it is done reserves an estimate. Its answer has an id,
// which contains all that a settlement needs: the buckets, the amounts and the limits. So the store
// has no record of a reservation. Only a settlement leaves a mark, so that it happens once: see
// [limiter.Settlements].
//
// # The id
//
// The id is a sealed record. It may have names of customers, so only the holder of a key of the
// [Keyring] can read, make or change one. It is text of the characters A-Z, a-z, 0-9, '-' and '_',
// at most [MaxLength] of them, and has one spelling:
//
//	base64url( version 1 | key id 4 | nonce 16 | AES-256-GCM(record) | tag 16 )
//
// The key id is the beginning of the key's SHA-256, under a label. The 21 bytes before the record
// are authenticated with it. Each id is sealed under its own key, HMAC-SHA256(key, label and
// nonce), so that one key can seal any number of them. The nonce is the [Reservation]'s ID.
//
// An id has its time of expiry and its namespace. A settlement compares the namespace with its own.
//
// # Estimates
//
// For a request without an estimate, [Estimates] computes one from earlier settlements.
//
// # Ledger
//
// A [Ledger] applies charges, refunds and settlements, which come when the work is done. The
// work cannot be undone then. So a charge is never lost for lack of tokens, nor because the store
// does not answer at the time. It waits in a queue, and is applied when the store answers again.
//
// A charge that may have been applied is not repeated: the store lost a reply, and reports that the
// outcome is unknown ([limiter.ErrUncertain]). A repetition could charge twice, and deny requests
// without cause.
package reservation
