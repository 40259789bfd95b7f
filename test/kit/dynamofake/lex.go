package dynamofake

import "strings"

// tokenKind is the kind of a token of an expression.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenName             // #name
	tokenValue            // :value
	tokenWord             // a keyword, a function, a bare attribute name
	tokenSymbol           // an operator or a bracket
)

// token is one word of an expression.
type token struct {
	kind tokenKind
	text string
}

// is reports whether the token is this keyword, in any case, or this symbol.
func (t token) is(text string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, text) || t.kind == tokenSymbol && t.text == text
}

// String is the token as error messages name it.
func (t token) String() string {
	if t.kind == tokenEnd {
		return "<EOF>"
	}
	return t.text
}

// symbols are the operators and brackets, the longer ones first.
var symbols = []string{"<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", ".", "[", "]"}

// lex splits an expression into tokens. bad is the first character that begins none.
func lex(s string) (tokens []token, bad string) {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" {
			return tokens, ""
		}
		t := lexOne(s)
		if t.text == "" {
			return nil, s[:1]
		}
		tokens = append(tokens, t)
		s = s[len(t.text):]
	}
}

func lexOne(s string) token {
	if s[0] == '#' || s[0] == ':' {
		n := wordLen(s[1:])
		switch {
		case n == 0:
			return token{}
		case s[0] == '#':
			return token{tokenName, s[:1+n]}
		}
		return token{tokenValue, s[:1+n]}
	}
	if n := wordLen(s); n > 0 {
		return token{tokenWord, s[:n]}
	}
	for _, symbol := range symbols {
		if strings.HasPrefix(s, symbol) {
			return token{tokenSymbol, symbol}
		}
	}
	return token{}
}

// wordLen is how many characters at the start of s can stand in a word.
func wordLen(s string) int {
	for i, r := range s {
		if r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return i
		}
	}
	return len(s)
}
