package ratemodel

import "slices"

// account checks that each answer agrees with the store: an admission is paid once,
// and a denial not at all, or a remedy is under way.
func (o oracle) account() {
	for n, ops := range o.ops {
		for _, op := range ops {
			if r := o.reps[n]; r.life == op.life && op.answer != open && (op.other == nil || op.other.answer != open) {
				o.accountFor(r.replica, op)
			}
		}
	}
}

func (o oracle) accountFor(r *replica, op *operation) {
	paid, remedied := op.commits > 0, op.remedy != nil
	copied := paid && op.answer == no // a copy was applied after another one was refused
	switch {
	case copied:
		o.stats.Doubled++
	case op.told == yes && !paid && !remedied:
		o.fail("a take of %v was admitted and never paid", op.tokens)
	case op.told == yes && paid && remedied:
		o.fail("a take of %v was paid twice", op.tokens)
	case op.told == no && paid && !remedied:
		o.fail("a take of %v was denied and not given back", op.tokens)
	}
	if remedied && op.remedy.commits == 0 && !op.remedy.unsure && !slices.Contains(r.owed, op.remedy) && !slices.Contains(r.pending, op.remedy) {
		o.fail("a %s of %v is forgotten", op.remedy.kind, op.remedy.tokens)
	}
}
