package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Name is the name of an entity or a resource: any bytes. In JSON it is a string, or {"base64":
// "..."} if it is not UTF-8.
type Name string

type nameBytes struct {
	Base64 *[]byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (n Name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	text := []byte(n)
	return json.Marshal(nameBytes{&text})
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Name) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*n = Name(s)
		return nil
	}
	var b nameBytes
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if dec.Decode(&b) != nil || b.Base64 == nil {
		return errors.New(`a name is a string, or {"base64": "..."} for bytes that are no UTF-8`)
	}
	*n = Name(*b.Base64)
	return nil
}

// String returns plain text unchanged, and any other name quoted as in Go. Text that begins with a
// quote is quoted too, so that different names look different.
func (n Name) String() string {
	if n == "" || n[0] == '"' || !utf8.ValidString(string(n)) {
		return strconv.QuoteToASCII(string(n))
	}
	for _, r := range string(n) {
		if !unicode.IsPrint(r) {
			return strconv.QuoteToASCII(string(n))
		}
	}
	return string(n)
}
