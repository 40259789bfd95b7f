package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// adjustment returns the noun bucket of a verb that changes balances.
func adjustment(verb, short string) func(*operator) *cobra.Command {
	return func(o *operator) *cobra.Command {
		var f bucketFlags
		var change api.BucketChange
		var fitting, beyond bool
		cmd := &cobra.Command{
			Use: "bucket TOKENS", Short: short,
			Example: "  ratelimit " + verb + " bucket --entity key/k-123 --resource gpt-4 --limit tpm 1000",
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := f.check(); err != nil {
					return err
				}
				if err := amount(cmd, verb, args, f.limit, &change); err != nil {
					return err
				}
				switch {
				case fitting:
					change.Excess = api.UpToCapacity
				case beyond:
					change.Excess = api.Beyond
				}
				change.Entity, change.Resource, change.Limit, change.Variant = api.Name(f.entity), api.Name(f.resource), f.limit, f.variant
				return o.adjust(cmd, verb, change)
			},
		}
		if verb == "reset" {
			cmd.Use = "bucket"
			cmd.Example = "  ratelimit reset bucket --entity key/k-123 --resource gpt-4"
		}
		f.flags(cmd.Flags(), "NAME of the limit whose balance changes (default: every limit of the bucket)")
		filledVar(cmd.Flags(), &change.Once, "once", "TEXT of which one change is made in a day, such as the number of an invoice")
		if verb == "top-up" {
			cmd.Flags().BoolVar(&fitting, "up-to-capacity", false, "book what fits (default: refuse a top-up that does not fit as a whole)")
			cmd.Flags().BoolVar(&beyond, "beyond", false, "book all, also above the capacity: requests use that extra first, and it does not refill")
			cmd.MarkFlagsMutuallyExclusive("up-to-capacity", "beyond")
		}
		o.switchFlags(cmd)
		return cmd
	}
}

// amount reads the argument of a verb, which reset has not.
func amount(cmd *cobra.Command, verb string, args []string, limit string, change *api.BucketChange) error {
	if verb == "reset" {
		return command.NoArgs(cmd, args)
	}
	if len(args) != 1 {
		return fmt.Errorf("%s needs one number of tokens, such as 1000 or 0.5", cmd.CommandPath())
	}
	if strings.HasSuffix(args[0], money.Unit) && !money.Is(limit) {
		return fmt.Errorf("%q is dollars: name a limit of money, such as --limit usd", args[0])
	}
	tokens, err := readTokens(args[0])
	change.Tokens = &tokens
	if err == nil && money.Is(limit) && !strings.HasSuffix(args[0], money.Unit) && tokens > 0 && tokens < money.Cent*limiter.Milli {
		cmd.PrintErrf("note: this is %s: a number without USD counts millionths of a dollar; write %q for dollars\n", money.Amounts(limit, tokens.String()), args[0]+money.Unit)
	}
	return money.Explain(strings.TrimPrefix(args[0], "-"), err)
}

// readTokens reads tokens, or dollars such as "12.50 USD".
func readTokens(text string) (api.Tokens, error) {
	number, negative := strings.CutPrefix(text, "-")
	micro, ok := money.Parse(number)
	switch {
	case !ok || micro > limiter.MaxTokens:
		whole, _, _ := strings.Cut(number, ".")
		digits, grouped := money.Digits(whole)
		if !grouped || !strings.Contains(whole, "_") {
			return api.ParseTokens(text) // which refuses _
		}
		return api.ParseTokens(strings.TrimSuffix(text, number) + digits + strings.TrimPrefix(number, whole))
	case negative:
		return api.Tokens(-micro * limiter.Milli), nil
	default:
		return api.Tokens(micro * limiter.Milli), nil
	}
}

func (o *operator) adjust(cmd *cobra.Command, verb string, change api.BucketChange) error {
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	done, err := n.AdjustBucket(cmd.Context(), verb, change, o.options())
	if err != nil {
		return o.refusal(unfit(o.choices(err), change))
	}
	noteCut(cmd, verb, done)
	noteEnds(cmd, done)
	if done.InMemory && done.Result == api.Changed {
		command.NoteMemory(cmd)
	}
	if o.output != command.OutputTable && o.output != command.OutputWide {
		return command.WriteOne[bucketRow](cmd.OutOrStdout(), o.output, nil, nil, done)
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "bucket of entity %s for resource %s %s%s%s\n", change.Entity, change.Resource, done.Result, firstText(done), command.DryText(done.DryRun)); err != nil {
		return command.Failed(err)
	}
	if done.After == nil { // a repetition, when the bucket is not in use any more
		return nil
	}
	return command.WriteOne(cmd.OutOrStdout(), o.output, adjustedColumns(verb, done), bucketRows([]api.Bucket{*done.After}), nil)
}

// adjustedColumns are those of a bucket whose balances changed. A top-up and a take-out show the
// booked amount, and the amount that was cut.
func adjustedColumns(verb string, done *api.Adjusted) []command.Column[bucketRow] {
	all := bucketColumns()
	if done.Result == api.Repeated || verb != "top-up" && verb != "take-out" {
		return all
	}
	bookingOf := func(r bucketRow) *api.Booking {
		for i := range done.Booked {
			if done.Booked[i].Limit == r.limit.Name {
				return &done.Booked[i]
			}
		}
		return nil
	}
	booked := command.Column[bucketRow]{Title: "BOOKED", Limit: bucketRow.name, Value: func(r bucketRow) string {
		if b := bookingOf(r); b != nil {
			return b.Tokens.String()
		}
		return "-"
	}}
	cut := command.Column[bucketRow]{Title: "CUT", Limit: bucketRow.name, Value: func(r bucketRow) string {
		if b := bookingOf(r); b != nil {
			return b.Cut.String()
		}
		return "-"
	}}
	return append(all, booked, cut)
}

// noteCut reports for each limit the part of the amount that was not booked.
func noteCut(cmd *cobra.Command, verb string, done *api.Adjusted) {
	bound := "the balance is at its capacity"
	if verb == "take-out" {
		bound = "the debt is at its floor"
	}
	verbs := "were"
	if done.DryRun {
		verbs = "would be"
	}
	for _, b := range done.Booked {
		if booked := max(b.Tokens, -b.Tokens); b.Cut > 0 {
			of := func(n api.Tokens) string { return money.Amounts(b.Limit, n.String()) }
			cmd.PrintErrf("note: limit %s: %s of %s %s booked, and %s cut: %s\n", b.Limit, of(booked), money.Counted(b.Limit, (booked+b.Cut).String()), verbs, of(b.Cut), bound)
		}
	}
}

// noteEnds warns of the limits in flight whose places were freed: requests that had them may still run.
func noteEnds(cmd *cobra.Command, done *api.Adjusted) {
	if done.After == nil {
		return
	}
	for _, l := range done.After.Limits {
		freed := slices.ContainsFunc(done.Booked, func(b api.Booking) bool { return b.Limit == l.Name && b.Tokens > 0 })
		if freed && l.InFlight {
			cmd.PrintErrf("note: limit %s: requests that still run do not count any more, and the end of each frees the place of another one\n", l.Name)
		}
	}
}

// unfit has the refusal of a top-up that does not fit name the flags that have it made.
func unfit(err error, change api.BucketChange) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Type != api.Full {
		return err
	}
	texts := make([]string, 0, len(p.Booked))
	some := false
	for _, b := range p.Booked {
		texts = append(texts, fmt.Sprintf("%s of %s fit into limit %s", money.Amounts(b.Limit, b.Tokens.String()), money.Counted(b.Limit, (b.Tokens+b.Cut).String()), b.Limit))
		some = some || b.Tokens > 0
	}
	told := *p
	told.Detail = strings.Join(texts, ", ") + ": nothing was booked"
	if change.Once != "" {
		told.Detail += fmt.Sprintf(", and the text %.100q can be used later", change.Once)
	}
	switch {
	case some && change.Excess == "":
		told.Detail += "; add --up-to-capacity to book what fits, or --beyond to book all, above the capacity"
	case change.Excess == "":
		told.Detail += "; add --beyond to book all, above the capacity"
	default:
		told.Detail += "; --beyond books all, above the capacity"
	}
	return &told
}

// firstText describes the change that a repeated one repeats.
func firstText(done *api.Adjusted) string {
	switch {
	case done.Result != api.Repeated:
		return ""
	case done.First == nil:
		return ": nothing was changed; the first change is in the audit"
	}
	booked := make([]string, 0, len(done.First.Booked))
	for _, b := range done.First.Booked {
		text := b.Limit + " " + money.Amounts(b.Limit, b.Tokens.String())
		if b.Cut > 0 {
			text += " (" + money.Amounts(b.Limit, b.Cut.String()) + " cut)"
		}
		booked = append(booked, text)
	}
	amount := ""
	if done.First.Tokens > 0 {
		amount = " of " + done.First.Tokens.String()
	}
	return ": the first time a " + done.First.Verb + amount + " booked " + strings.Join(booked, ", ")
}
