package descriptor

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// prefixBits are the bits of addresses that a placeholder keeps.
type prefixBits struct{ v4, v6 int }

// cutPrefix splits a placeholder such as address/64 or address/24/64 into the name and the bits. One
// number is that of IPv6. It returns false for a name without numbers.
func cutPrefix(text string) (name string, bits *prefixBits, ok bool, err error) {
	parts := strings.Split(text, "/")
	n := len(parts)
	for n > 1 && n > len(parts)-2 && isNumber(parts[n-1]) {
		n--
	}
	if n == len(parts) {
		return "", nil, false, nil
	}
	bits = &prefixBits{v4: 32}
	numbers := parts[n:]
	if bits.v6, err = strconv.Atoi(numbers[len(numbers)-1]); err == nil && len(numbers) == 2 {
		bits.v4, err = strconv.Atoi(numbers[0])
	}
	if err != nil || bits.v6 < 33 || bits.v6 > 128 || bits.v4 < 8 || bits.v4 > 32 {
		return "", nil, true, fmt.Errorf("{%s} cuts addresses to other lengths than it may: write {%s/64} for 64 bits of IPv6, 33 to 128, or {%s/24/64} for 24 bits of IPv4 too, 8 to 32",
			text, parts[0], parts[0])
	}
	return strings.Join(parts[:n], "/"), bits, true, nil
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// value returns the value of the placeholder, cut if it is an address.
func (p *part) value(values []captured) string {
	value := values[p.capture].value
	if p.bits == nil {
		return value
	}
	if cut, ok := p.bits.cut(value); ok {
		return cut
	}
	return value
}

// appendValue appends the value of the placeholder, escaped. The block of an address keeps its '/': no other
// value has one.
func (p *part) appendValue(buf []byte, values []captured) []byte {
	value := values[p.capture].value
	if p.bits == nil {
		return appendEscaped(buf, value, p.stop)
	}
	cut, ok := p.bits.cut(value)
	if !ok {
		return appendEscaped(buf, value, p.stop)
	}
	address, length, block := strings.Cut(cut, "/")
	buf = appendEscaped(buf, address, p.stop)
	if block {
		buf = append(append(buf, '/'), length...)
	}
	return buf
}

// cut returns the block of an address, or of a block, and false for any other value. An address of IPv4
// that is to stay whole has no length behind it.
func (b *prefixBits) cut(value string) (string, bool) {
	if len(value) > maxAddress {
		return "", false
	}
	asked, ok := parseAsked(value)
	if !ok {
		return "", false
	}
	bits := b.v6
	if asked.Addr().Is4() {
		bits = b.v4
	}
	if bits >= asked.Bits() && asked.Bits() == asked.Addr().BitLen() {
		return asked.Addr().String(), true
	}
	return netip.PrefixFrom(asked.Addr(), min(bits, asked.Bits())).Masked().String(), true
}
