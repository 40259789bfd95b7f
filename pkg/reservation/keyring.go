package reservation

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// MaxLength is the greatest length of an id, in characters.
	MaxLength = 4096
	// MinKey is the least length of a key, in bytes.
	MinKey = 32
	// MaxKey is the greatest length of a key, in bytes.
	MaxKey = 256
	// MaxKeys is the greatest number of keys of a keyring.
	MaxKeys = 8
)

// The offsets of the parts of an id, before it is encoded as text.
const (
	version      = 1
	keyIDAt      = 1
	nonceAt      = keyIDAt + 4
	headerLength = nonceAt + 16
	tagLength    = 16
	maxRecord    = MaxLength/4*3 - headerLength - tagLength // 4 characters stand for 3 bytes
)

// Labels separate the values that are derived from one key. They are part of the format.
const (
	keyIDLabel  = "ratelimit reservation: id of a key\x00"
	derivedText = "ratelimit reservation: key of an id\x00"
)

// text is strict, so that an id has one spelling only.
var text = base64.RawURLEncoding.Strict()

// Reservation is the reservation of one answer.
type Reservation struct {
	// ID is 16 random bytes, drawn by Seal and the same each time the id is opened. It identifies
	// the mark of a settlement, see [limiter.Mark]. Seal ignores it.
	ID        string
	Namespace string            // any bytes
	Expires   time.Time         // from then on it cannot be settled; whole milliseconds, Seal cuts the rest
	Holdings  []limiter.Holding // at most MaxHoldings
}

// Keyring seals reservations and opens them. It is immutable and safe for
// concurrent use; only [NewKeyring] makes one. Printing it shows ids of keys only.
type Keyring struct {
	keys []key // not empty; the first seals
}

type key struct {
	id     [nonceAt - keyIDAt]byte
	secret []byte
}

// NewKeyring returns a keyring of 1 to [MaxKeys] keys, each [MinKey] to [MaxKey] random bytes; a
// password is no key. The first seals, all open. So keys change without a refusal: give every
// process the new key as its second, and then swap the two. Remove the old one when the last id
// that it sealed has expired. It fails with [limiter.ErrInvalid]; the error shows nothing of a key.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("%w: %d reservation keys; there must be 1 to %d", limiter.ErrInvalid, len(keys), MaxKeys)
	}
	k := &Keyring{keys: make([]key, len(keys))}
	for i, secret := range keys {
		if len(secret) < MinKey || len(secret) > MaxKey {
			return nil, fmt.Errorf("%w: reservation key %d has %d bytes; it must be %d to %d random bytes", limiter.ErrInvalid, i+1, len(secret), MinKey, MaxKey)
		}
		sum := sha256.Sum256(append([]byte(keyIDLabel), secret...))
		k.keys[i].id = [nonceAt - keyIDAt]byte(sum[:])
		k.keys[i].secret = append([]byte(nil), secret...)
		if k.find(k.keys[i].id[:]) != &k.keys[i] {
			return nil, fmt.Errorf("%w: reservation key %d has the id of an earlier one: it is the same key, or must be drawn again", limiter.ErrInvalid, i+1)
		}
	}
	return k, nil
}

// find returns the key with an id, nil when there is none.
func (k *Keyring) find(id []byte) *key {
	for i := range k.keys {
		if string(k.keys[i].id[:]) == string(id) {
			return &k.keys[i]
		}
	}
	return nil
}

// Format prints the ids of the keys, for every verb: a keyring in a log reveals no key.
func (k *Keyring) Format(f fmt.State, _ rune) {
	ids := make([]string, len(k.keys))
	for i := range k.keys {
		ids[i] = fmt.Sprintf("%x", k.keys[i].id)
	}
	_, _ = io.WriteString(f, "keyring("+strings.Join(ids, " ")+")")
}

// Seal returns the id of a reservation. random is a cryptographic source, such as
// crypto/rand.Reader, of which 16 bytes are read; no two calls may read the same bytes. Seal fails
// with [ErrTooLong], with [limiter.ErrInvalid] for a holding that no decision makes, and with the
// error of random.
func (k *Keyring) Seal(random io.Reader, r Reservation) (string, error) {
	sealing := &k.keys[0]
	buf := make([]byte, headerLength, 512)
	buf[0] = version
	copy(buf[keyIDAt:], sealing.id[:])
	if _, err := io.ReadFull(random, buf[nonceAt:]); err != nil {
		return "", fmt.Errorf("draw the id of a reservation: %w", err)
	}
	buf, err := appendRecord(buf, &r)
	if err != nil {
		return "", err
	}
	aead, err := sealing.derive(buf[nonceAt:headerLength])
	if err != nil {
		return "", err
	}
	header := buf[:headerLength]
	sealed := aead.Seal(header, onlyNonce(aead), buf[headerLength:], header) //nolint:gosec // a derived key seals once
	return text.EncodeToString(sealed), nil
}

// Open returns the reservation of an id. It fails with [ErrMalformed], [ErrForged] or [ErrExpired],
// for which [Reason] has a word. The record of an id is parsed only after it is authenticated.
func (k *Keyring) Open(id string, now time.Time) (Reservation, error) {
	buf, err := decodeText(id)
	if err != nil {
		return Reservation{}, err
	}
	header, sealed := buf[:headerLength], buf[headerLength:]
	opening := k.find(header[keyIDAt:nonceAt])
	if opening == nil {
		return Reservation{}, fmt.Errorf("%w: it names a key that is not in use", ErrForged)
	}
	aead, err := opening.derive(header[nonceAt:])
	if err != nil {
		return Reservation{}, err
	}
	record, err := aead.Open(sealed[:0], onlyNonce(aead), sealed, header)
	if err != nil {
		return Reservation{}, fmt.Errorf("%w: its content was altered", ErrForged)
	}
	r, err := parseRecord(record)
	if err != nil {
		return Reservation{}, err
	}
	if !now.Before(r.Expires) { // rule: a reservation that expired is refused
		return Reservation{}, &ExpiredError{Expired: r.Expires}
	}
	r.ID = string(header[nonceAt:])
	return r, nil
}

// decodeText returns the bytes of an id, at least a header and a tag.
func decodeText(id string) ([]byte, error) {
	if len(id) > MaxLength {
		return nil, fmt.Errorf("%w: it has %d characters; at most %d are legal", ErrMalformed, len(id), MaxLength)
	}
	buf, err := text.DecodeString(id)
	if err != nil || strings.ContainsAny(id, "\r\n") { // which the decoder skips
		return nil, fmt.Errorf("%w: it must consist of A-Z, a-z, 0-9, '-' and '_', as it was given", ErrMalformed)
	}
	if len(buf) < headerLength+tagLength {
		return nil, fmt.Errorf("%w: %d characters are too few", ErrMalformed, len(id))
	}
	if buf[0] != version {
		return nil, fmt.Errorf("%w: it has version %d; this program reads version %d", ErrMalformed, buf[0], version)
	}
	return buf, nil
}

// derive returns the cipher of one id.
func (k *key) derive(nonce []byte) (cipher.AEAD, error) {
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(derivedText)) // a hash never fails
	_, _ = mac.Write(nonce)
	block, err := aes.NewCipher(mac.Sum(make([]byte, 0, sha256.Size)))
	if err != nil {
		return nil, errors.New("derive the key of a reservation id") // cannot be: the key is one of AES-256
	}
	return cipher.NewGCM(block)
}

// onlyNonce returns the only nonce of a derived key, which seals one record.
func onlyNonce(aead cipher.AEAD) []byte { return make([]byte, aead.NonceSize()) }
