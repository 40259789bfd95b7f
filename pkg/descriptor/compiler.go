package descriptor

import (
	"fmt"
)

// planPrefix begins the text that tells the buckets of one plan from those of another.
const planPrefix = "plan/"

// compiler is the state of one Compile.
type compiler struct {
	limitSets map[string]limitSet // by the name of the plan
	domains   []*Domain
	byName    map[string]*Domain
	rules     []*Rule
	problems  []Problem
	unbound   bool // the patterns of the current rule have a mistake, so its placeholders cannot be judged
}

func (c *compiler) problem(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}
