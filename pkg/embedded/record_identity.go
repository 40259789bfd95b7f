package embedded

import "crypto/sha256"

// Names are any bytes of any length, and keys of the file are not. So the key of a record is its
// identity, if that is short. Otherwise the key is a hash of the identity, and the record begins
// with the identity.

// longestKey is the greatest length of a key, in bytes.
const longestKey = 1024

const hashed = 0xff // the first byte of a key of 33 bytes that is a hash; no identity so short begins with it

// keyOf returns the key of a record, and the beginning of its value.
func keyOf(identity []byte) (key, value []byte) {
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
	r := &recordReader{Rest: value}
	identity = []byte(r.Text())
	sum := sha256.Sum256(identity)
	return identity, r.Rest, !r.Failed && string(sum[:]) == string(key[1:])
}
