package embedded

import "crypto/sha256"

// Names are any bytes of any length, and keys of the file are not. So the identity of
// what a record is about is its key where it is short; else the key is a hash of it,
// and the record begins with the identity itself.

const (
	longestKey = 1024
	hashed     = 0xff // the first byte of a key of 33 bytes that is a hash; no identity so short begins with it
)

// identified returns a record's key, and what its value begins with.
func identified(identity []byte) (key, value []byte) {
	if len(identity) <= longestKey {
		return identity, nil
	}
	sum := sha256.Sum256(identity)
	return append([]byte{hashed}, sum[:]...), appendText(nil, string(identity))
}

// identityOf returns the identity of a record, and the rest of its value.
func identityOf(key, value []byte) (identity, rest []byte, ok bool) {
	if len(key) != sha256.Size+1 || key[0] != hashed {
		return key, value, true
	}
	r := &reader{buf: value}
	identity = []byte(r.text())
	sum := sha256.Sum256(identity)
	return identity, r.buf, !r.fault && string(sum[:]) == string(key[1:])
}
