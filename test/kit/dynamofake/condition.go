package dynamofake

// condition is a condition, a filter or a key condition, ready to be asked.
type condition interface {
	holds(it item) (bool, error)
}

// The conditions.
type (
	always     struct{}
	and        struct{ left, right condition }
	or         struct{ left, right condition }
	comparison struct {
		operator    string
		left, right operand
	}
	between struct{ value, low, high operand }
	exists  struct {
		name attribute
		want bool
	}
	begins struct{ value, prefix operand }
)

func (always) holds(item) (bool, error) { return true, nil }

func (c and) holds(it item) (bool, error) {
	if ok, err := c.left.holds(it); err != nil || !ok {
		return false, err
	}
	return c.right.holds(it)
}

func (c or) holds(it item) (bool, error) {
	if ok, err := c.left.holds(it); err != nil || ok {
		return ok, err
	}
	return c.right.holds(it)
}

// holds is false for a missing operand, save that a missing one is unequal to all.
func (c comparison) holds(it item) (bool, error) {
	left, err := c.left.of(it)
	if err != nil {
		return false, err
	}
	right, err := c.right.of(it)
	if err != nil {
		return false, err
	}
	switch c.operator {
	case "=":
		return equal(left, right), nil
	case "<>":
		return !equal(left, right), nil
	}
	order, ok := compare(left, right)
	switch c.operator {
	case "<":
		ok = ok && order < 0
	case "<=":
		ok = ok && order <= 0
	case ">":
		ok = ok && order > 0
	case ">=":
		ok = ok && order >= 0
	}
	return ok, nil
}

func (c between) holds(it item) (bool, error) {
	low := comparison{"<=", c.low, c.value}
	return and{low, comparison{"<=", c.value, c.high}}.holds(it)
}

func (c exists) holds(it item) (bool, error) { return (it[string(c.name)] != nil) == c.want, nil }

func (c begins) holds(it item) (bool, error) {
	v, err := c.value.of(it)
	if err != nil {
		return false, err
	}
	prefix, err := c.prefix.of(it)
	return beginsWith(v, prefix), err
}
