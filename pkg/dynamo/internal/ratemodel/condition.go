package ratemodel

// comparison is an operator of a condition.
type comparison string

const (
	equal   comparison = "="
	differs comparison = "<>"
	atMost  comparison = "<="
	atLeast comparison = ">="
)

// test is a condition as DynamoDB has them: an attribute against a constant.
type test struct {
	attr  attr
	is    comparison
	value int64
}

func (c test) holds(it *item) bool {
	v := it[c.attr]
	switch c.is {
	case equal:
		return v == c.value
	case differs:
		return v != c.value
	case atMost:
		return v <= c.value
	case atLeast:
		return v >= c.value
	}
	return false
}

// change is an update as DynamoDB has them: SET to a constant, or ADD one.
type change struct {
	attr  attr
	add   bool
	value int64
}
