package embedded

import "encoding/binary"

// maxFields bounds the number of fields in a record.
const maxFields = 1 << 10

// appendText appends a text with its length before it.
func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// byteOf returns 1 for true.
func byteOf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// recordReader reads a record. After a failure all results are zero.
type recordReader struct {
	Rest   []byte // not read yet
	Failed bool   // the bytes were not a valid record
}

// Uint reads a number of 0 or above.
func (r *recordReader) Uint() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if size <= 0 {
		r.Rest, r.Failed = nil, true
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Int reads a number from least to most.
func (r *recordReader) Int(least, most int64) int64 {
	n, size := binary.Varint(r.Rest)
	if size <= 0 || n < least || n > most {
		r.Rest, r.Failed = nil, true
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Text reads a text with its length before it.
func (r *recordReader) Text() string {
	n := r.Uint()
	if n > uint64(len(r.Rest)) {
		r.Rest, r.Failed = nil, true
		return ""
	}
	s := string(r.Rest[:n])
	r.Rest = r.Rest[n:]
	return s
}

// Count reads a number of fields, 0 to 1024.
func (r *recordReader) Count() int {
	n := r.Uint()
	if n > maxFields {
		r.Rest, r.Failed = nil, true
		return 0
	}
	return int(n)
}

// version reads the version of a record, which must be this one.
func (r *recordReader) version(want byte) {
	if r.Byte(want) != want {
		r.Rest, r.Failed = nil, true
	}
}

// Byte reads a byte from 0 to most.
func (r *recordReader) Byte(most byte) byte {
	if len(r.Rest) == 0 || r.Rest[0] > most {
		r.Rest, r.Failed = nil, true
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}
