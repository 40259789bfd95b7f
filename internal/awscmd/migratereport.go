package awscmd

import (
	"fmt"
	"io"

	"github.com/ratelimit/ratelimit/internal/awscmd/migration"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lines writes lines, and keeps the first error.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(l.w, format+"\n", args...); l.err == nil {
		l.err = err
	}
}

// describeSet lists the records of a table of zae-limiter, and those that cannot be taken over.
func describeSet(w io.Writer, table, schema string, set *migration.Set) error {
	out := lines{w: w}
	out.printf("table %s: of zae-limiter, schema %s", table, schema)
	for i := range set.Namespaces {
		ns := &set.Namespaces[i]
		kinds := map[limiter.RefKind]int{}
		for _, r := range ns.Records {
			kinds[r.Ref.Kind]++
		}
		text := fmt.Sprintf("namespace %q: %s, limits of %s", ns.Name, entities(kinds[limiter.RefEntity]), command.Count(kinds[limiter.RefResourceLimits], "resource"))
		if kinds[limiter.RefSystemLimits] > 0 {
			text += ", of the system"
		}
		out.printf("%s and of %s; %s below full", text, entities(kinds[limiter.RefEntityLimits]), command.Count(len(ns.Balances), "balance"))
	}
	for _, c := range set.Ignored {
		out.printf("left behind: %s (%d)", c.Kind, c.N)
	}
	for _, l := range set.Losses {
		out.printf("cannot be taken over: %s", l)
	}
	return out.err
}

func entities(n int) string {
	if n == 1 {
		return "1 entity"
	}
	return fmt.Sprintf("%d entities", n)
}

// describePlan writes the changes that a run would make to a table.
func describePlan(w io.Writer, table string, plan *migration.Outcome) error {
	out := lines{w: w}
	out.printf("table %s: %s to make, %d there already, %d that differ", table, command.Count(plan.Made, "record"), plan.Same, plan.Kept+plan.Replaced)
	verb := "stays as it is"
	if plan.Replaced > 0 {
		verb = "is replaced"
	}
	for _, ref := range plan.Differ {
		out.printf("differs and %s: %s", verb, migration.Subject(ref))
	}
	return out.err
}

// progressOf returns a function that reports the progress.
func progressOf(w io.Writer) func(migration.Tally) {
	return func(t migration.Tally) {
		if t.Done < t.Of {
			_, _ = fmt.Fprintf(w, "%d of %d\n", t.Done, t.Of) // the last line has the error
		}
	}
}

// describeOutcome writes the changes that a run made.
func describeOutcome(w io.Writer, done *migration.Outcome, balances bool) error {
	out := lines{w: w}
	out.printf("done: %s made, %d there already, %d replaced, %d kept that differ", command.Count(done.Made, "record"), done.Same, done.Replaced, done.Kept)
	if balances {
		out.printf("%s lowered, %d low enough already, %d without stored limits", command.Count(done.Lowered, "balance"), done.Enough, done.Unplaced)
	}
	return out.err
}
