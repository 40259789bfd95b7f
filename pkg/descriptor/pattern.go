package descriptor

import (
	"fmt"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// maxAddress is the length of the longest text of an address or a block. A longer value is neither,
// and is not parsed.
const maxAddress = 64

// patternKind says how a pattern matches.
type patternKind uint8

const (
	anyValue patternKind = iota
	exactValue
	globValue
	regexValue
	cidrValue
	listValue
)

// pattern is the pattern of a rule for the values of one key. It is small, so that the patterns of
// most rules share a cache line.
type pattern struct {
	key      keyID
	optional bool
	kind     patternKind
	text     string // the exact value; for other kinds the text in the file, for people
	*compiled
}

// compiled is the compiled form of a pattern that is not an exact value, and its key for people.
type compiled struct {
	name   string         // of the key
	parts  []string       // globValue: the texts between the stars, at least two
	regex  *regexp.Regexp // anchored at both ends
	blocks []netip.Prefix
	list   *values // listValue
}

// values are texts, exact ones or with stars.
type values struct {
	names    map[string]bool
	patterns []pattern // in the order of the file
}

func newValues(texts []string) *values {
	l := &values{names: make(map[string]bool, len(texts))}
	for _, text := range texts {
		if p := newValuePattern(text); p.kind == exactValue {
			l.names[text] = true
		} else {
			l.patterns = append(l.patterns, p)
		}
	}
	return l
}

// match returns the text that matches a value, and whether there is one.
func (l *values) match(value string) (string, bool) {
	if l.names[value] {
		return value, true
	}
	for i := range l.patterns {
		if p := &l.patterns[i]; p.matches(value) {
			return p.text, true
		}
	}
	return "", false
}

func newPattern(kind patternKind, text string) pattern {
	return pattern{kind: kind, text: text, compiled: new(compiled)}
}

// matches reports whether the pattern matches one value.
func (p *pattern) matches(value string) bool {
	switch p.kind {
	case anyValue:
		return true
	case exactValue:
		return value == p.text
	case globValue:
		return matchGlob(p.parts, value)
	case regexValue:
		return p.regex.MatchString(value)
	case cidrValue:
		return matchBlocks(p.blocks, value)
	case listValue:
		_, ok := p.list.match(value)
		return ok
	default:
		return false
	}
}

// prefix returns the text that every matching value begins with, and whether it
// is the whole value.
func (p *pattern) prefix() (text string, whole bool) {
	switch p.kind {
	case exactValue:
		return p.text, true
	case globValue:
		return p.parts[0], false
	case anyValue, regexValue, cidrValue, listValue:
		return "", false
	default:
		return "", false
	}
}

// newValuePattern compiles an exact value or one with stars.
func newValuePattern(value string) pattern {
	if !strings.Contains(value, "*") {
		return newPattern(exactValue, value)
	}
	split := strings.Split(value, "*")
	inner := slices.DeleteFunc(slices.Clone(split[1:len(split)-1]), func(s string) bool { return s == "" })
	first, last := split[0], split[len(split)-1]
	if first == "" && last == "" && len(inner) == 0 {
		return newPattern(anyValue, value)
	}
	p := newPattern(globValue, value)
	p.parts = append(append(p.parts, first), append(inner, last)...)
	return p
}

// matchGlob reports whether the value begins with the first part, ends with the last, and has the
// others between them in order. Each part is taken at its first place, which is enough. So the time
// is linear.
func matchGlob(parts []string, value string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value = value[i+len(part):]
	}
	return true
}

// newRegexPattern compiles a regular expression that must match the whole value. '.' matches every
// byte, so that a line feed in a value is no way around a rule. The text is parsed alone first, so
// that "a)|(b" is a mistake.
func newRegexPattern(text string) (pattern, error) {
	p := newPattern(regexValue, text)
	parsed, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return p, fmt.Errorf("%w; it must be a regular expression in RE2 syntax", err)
	}
	if p.regex, err = regexp.Compile(`\A(?:` + parsed.String() + `)\z`); err != nil {
		return p, fmt.Errorf("%w; it must be a regular expression in RE2 syntax", err)
	}
	return p, nil
}

// parseBlock reads one block of a rule.
func parseBlock(text string) (netip.Prefix, error) {
	block, err := netip.ParsePrefix(text)
	if err != nil {
		if addr, err := netip.ParseAddr(text); err == nil {
			return block, fmt.Errorf("%q is an address; a block of one address is \"%s/%d\"", text, addr, addr.BitLen())
		}
		return block, fmt.Errorf("%q is not a block of addresses; write it like \"10.0.0.0/8\" or \"fd00::/8\"", text)
	}
	if block != block.Masked() {
		return block, fmt.Errorf("%q has bits set beyond its length; the block is \"%s\"", text, block.Masked())
	}
	return unmap(block), nil
}

// matchBlocks reports whether the value is an address in one of the blocks, or a block within one.
// Gateways that mask addresses send blocks.
func matchBlocks(blocks []netip.Prefix, value string) bool {
	if len(value) > maxAddress {
		return false
	}
	asked, ok := parseAsked(value)
	if !ok {
		return false
	}
	for _, block := range blocks {
		if block.Bits() <= asked.Bits() && block.Contains(asked.Addr()) {
			return true
		}
	}
	return false
}

// parseAsked reads an address or a block from a value. It drops the zone of an address: a zone
// names an interface, and blocks have none.
func parseAsked(value string) (netip.Prefix, bool) {
	if strings.Contains(value, "/") {
		block, err := netip.ParsePrefix(value)
		return unmap(block.Masked()), err == nil
	}
	if zone := strings.IndexByte(value, '%'); zone >= 0 && strings.Contains(value[:zone], ":") {
		value = value[:zone]
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// unmap returns an IPv4 block that is written in IPv6 form as an IPv4 block.
func unmap(block netip.Prefix) netip.Prefix {
	const mapped = 96 // bits of ::ffff:0:0/96
	if block.Addr().Is4In6() && block.Bits() >= mapped {
		return netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-mapped)
	}
	return block
}
