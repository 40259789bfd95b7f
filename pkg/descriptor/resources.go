package descriptor

// OtherResource is the resource of values that are not in the list of a rule.
const OtherResource = "other"

// resources is a list of the resources that values of descriptors may stand for. Clients may send
// any number of values: there are at most one bucket for each entry of the list, and one for
// OtherResource.
type resources struct{ values }

// find returns the resource that a value stands for.
func (l *resources) find(value string) string {
	if found, ok := l.match(value); ok {
		return found
	}
	return OtherResource
}
