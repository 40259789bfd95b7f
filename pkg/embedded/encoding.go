package embedded

import "encoding/binary"

// maxFields bounds what a record may say that it has.
const maxFields = 1 << 10

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

// reader reads what append functions wrote. After a fault everything is zero.
type reader struct {
	buf   []byte
	fault bool
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.buf)
	if size <= 0 {
		r.buf, r.fault = nil, true
		return 0
	}
	r.buf = r.buf[size:]
	return n
}

// int reads a number from least to most.
func (r *reader) int(least, most int64) int64 {
	n, size := binary.Varint(r.buf)
	if size <= 0 || n < least || n > most {
		r.buf, r.fault = nil, true
		return 0
	}
	r.buf = r.buf[size:]
	return n
}

func (r *reader) text() string {
	n := r.uint()
	if n > uint64(len(r.buf)) {
		r.buf, r.fault = nil, true
		return ""
	}
	s := string(r.buf[:n])
	r.buf = r.buf[n:]
	return s
}

func (r *reader) count() int {
	n := r.uint()
	if n > maxFields {
		r.buf, r.fault = nil, true
		return 0
	}
	return int(n)
}

// byte reads a byte from 0 to most.
func (r *reader) byte(most byte) byte {
	if len(r.buf) == 0 || r.buf[0] > most {
		r.buf, r.fault = nil, true
		return 0
	}
	b := r.buf[0]
	r.buf = r.buf[1:]
	return b
}
