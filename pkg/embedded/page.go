package embedded

import "slices"

// least keeps the first values of many, in an order, and not much more.
type least[V any] struct {
	most    int
	compare func(a, b V) int
	kept    []V
}

func (l *least[V]) add(v V) {
	l.kept = append(l.kept, v)
	if len(l.kept) == 2*l.most {
		l.kept = l.sorted()
	}
}

func (l *least[V]) sorted() []V {
	slices.SortFunc(l.kept, l.compare)
	return l.kept[:min(len(l.kept), l.most)]
}
