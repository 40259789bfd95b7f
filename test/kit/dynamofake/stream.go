package dynamofake

import (
	"slices"
)

// stream is the tokens of an expression, from the next one on.
type stream struct {
	tokens []token
	next   int
}

func (s *stream) peek() token {
	if s.next < len(s.tokens) {
		return s.tokens[s.next]
	}
	return token{}
}

func (s *stream) take() token {
	t := s.peek()
	s.next++
	return t
}

// accept takes the next token if it is text.
func (s *stream) accept(text string) bool {
	if s.peek().is(text) {
		s.next++
		return true
	}
	return false
}

// closes is the index of the bracket that closes the one at an index, -1 if none does.
func (s *stream) closes(open int) int {
	depth := 0
	for i := open; i < len(s.tokens); i++ {
		switch {
		case s.tokens[i].is("("):
			depth++
		case s.tokens[i].is(")"):
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// isOperand reports whether the bracket that comes next holds an operand.
func (s *stream) isOperand() bool {
	end := s.closes(s.next)
	if end < 0 || end+1 >= len(s.tokens) {
		return false
	}
	after := s.tokens[end+1]
	return slices.ContainsFunc([]string{"=", "<>", "<", "<=", ">", ">=", "BETWEEN"}, after.is)
}

// isCall reports whether the next token is the name of a function.
func (s *stream) isCall() bool {
	return s.peek().kind == tokenWord && s.next+1 < len(s.tokens) && s.tokens[s.next+1].is("(")
}

// isArithmetic reports whether the bracket that comes next holds a whole sum.
func (s *stream) isArithmetic() bool {
	end := s.closes(s.next)
	if end < 0 || end+1 < len(s.tokens) && (s.tokens[end+1].is("+") || s.tokens[end+1].is("-")) {
		return false
	}
	return slices.ContainsFunc(s.tokens[s.next:end], func(t token) bool { return t.is("+") || t.is("-") })
}
