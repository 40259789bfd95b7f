package guard

import "encoding/binary"

// Kinds and flags of HTTP/2 frames, RFC 9113.
const (
	frameHead    = 9
	kindData     = 0x0
	kindHeaders  = 0x1
	kindReset    = 0x3
	flagEnd      = 0x1 // END_STREAM, of kindData and kindHeaders
	prefaceBytes = 24  // before the first frame of a client
)

// frame is the head of a frame.
type frame struct {
	kind, flags byte
	stream      uint32
	size        int // of the payload
}

// ends reports whether the frame is the last of its sender on the stream.
func (f frame) ends() bool {
	return f.kind == kindReset || (f.kind == kindData || f.kind == kindHeaders) && f.flags&flagEnd != 0
}

func parseFrame(head []byte) frame {
	first := binary.BigEndian.Uint32(head)
	return frame{size: int(first >> 8), kind: byte(first), flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) &^ (1 << 31)} // #nosec G115 -- the last byte of the first four
}

// walker finds the frames in a stream of bytes.
type walker struct {
	head [frameHead]byte
	have int // bytes of the head
	skip int // bytes of the preface or of a payload still to skip
}

// walk calls begins for each frame whose head ends in p.
func (w *walker) walk(p []byte, begins func(frame)) {
	for len(p) > 0 {
		if w.skip > 0 {
			n := min(w.skip, len(p))
			w.skip -= n
			p = p[n:]
			continue
		}
		n := copy(w.head[w.have:], p)
		w.have += n
		p = p[n:]
		if w.have == frameHead {
			f := parseFrame(w.head[:])
			w.have, w.skip = 0, f.size
			begins(f)
		}
	}
}
