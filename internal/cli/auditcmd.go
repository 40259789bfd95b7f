package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func auditColumns() []command.Column[api.AuditEvent] {
	return []command.Column[api.AuditEvent]{
		{Title: "TIME", Value: func(e api.AuditEvent) string { return e.Time.UTC().Format(time.RFC3339) }},
		{Title: "PRINCIPAL", Value: func(e api.AuditEvent) string { return dash(e.Principal) }},
		{Title: "ACTION", Value: func(e api.AuditEvent) string { return e.Action }},
		{Title: "SUBJECT", Value: subjectOf},
		{Title: "REASON", Value: func(e api.AuditEvent) string { return dash(e.Reason) }},
		{Title: "DETAIL", Value: func(e api.AuditEvent) string { return dash(e.Detail) }},
		{Title: "ID", Wide: true, Value: func(e api.AuditEvent) string { return e.ID }},
		{Title: "BEFORE", Wide: true, Value: func(e api.AuditEvent) string { return compact(e.Before) }},
		{Title: "AFTER", Wide: true, Value: func(e api.AuditEvent) string { return compact(e.After) }},
	}
}

// compact is JSON on one line, or - for none.
func compact(text json.RawMessage) string {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return "-"
	}
	return line.String()
}

// subjectOf names the subject of an event: an entity, $RESOURCE:name or $SYSTEM.
func subjectOf(e api.AuditEvent) string {
	switch e.Level {
	case api.LevelSystem:
		return subjectSystem
	case api.LevelResource:
		return subjectResource + named(e.Resource)
	case api.LevelEntity, api.LevelNamespace:
	}
	if e.Resource != nil {
		return named(e.Entity) + " for " + named(e.Resource)
	}
	return named(e.Entity)
}

// subjectFrom sets the flags that the argument SUBJECT stands for.
func (f *levelFlags) subjectFrom(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.system || f.entity != "" || f.resource != "" {
		return errors.New("say the subject once: as an argument, or with --system, --resource or --entity")
	}
	resource, isResource := strings.CutPrefix(args[0], subjectResource)
	switch {
	case args[0] == subjectSystem:
		f.system = true
	case isResource:
		f.resource = resource
	default:
		f.entity = args[0]
	}
	return nil
}

// auditFlags say which events are listed.
type auditFlags struct {
	levelFlags
	principal, action string
	from, to          string
}

func (f *auditFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.system, "system", false, "only changes of the system's limits and of the namespace itself")
	filledVar(cmd.Flags(), &f.entity, "entity", "only changes of this entity and of its limits")
	filledVar(cmd.Flags(), &f.resource, "resource", "only changes of the limits of this resource")
	filledVar(cmd.Flags(), &f.principal, "principal", "only changes by this principal, such as socket:ada")
	filledVar(cmd.Flags(), &f.action, "action", "only this action, such as limits.put, or this kind of action, such as limits")
	cmd.Flags().StringVar(&f.from, "from", "", "only events at this time or later, such as 2026-11-22T09:00:00Z, 2026-11-22, 2026-11, or 1h for an hour ago")
	cmd.Flags().StringVar(&f.to, "to", "", "only events before this time")
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(limiter.Actions(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// of returns the events that the flags and the argument select.
func (f *auditFlags) of(args []string) (api.AuditOf, error) {
	if err := f.subjectFrom(args); err != nil {
		return api.AuditOf{}, err
	}
	if f.system && f.entity+f.resource != "" || f.entity != "" && f.resource != "" {
		return api.AuditOf{}, errors.New("say one subject: --system, --resource NAME or --entity ID, or none for all")
	}
	of := api.AuditOf{Entity: api.Name(f.entity), Resource: api.Name(f.resource), System: f.system, Principal: f.principal, Action: f.action}
	var err error
	of.From, of.To, err = parseUsageTimes(time.Now(), f.from, f.to)
	return of, err
}

func listAudit(o *operator) *cobra.Command {
	var f auditFlags
	var size int
	cmd := &cobra.Command{
		Use: "audit [SUBJECT]", Short: "List who changed what", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completer{o}.subject,
		Long: `list audit shows the changes in a namespace, the newest first: when, by which credential, why
where --reason said so, and the record before and after. SUBJECT is one of the column SUBJECT: an entity, and its limits
with it; '$RESOURCE:name'; or '$SYSTEM', the limits of the system and the namespace itself.
--entity, --resource and --system say the same. Without a subject all changes are shown.`,
		Example: `  ratelimit list audit --size 20
  ratelimit list audit --from 2026-11-22T08:00:00Z --principal ci
  ratelimit list audit key/k-123 --action bucket
  ratelimit list audit '$RESOURCE:gpt-4'
  ratelimit list audit --system -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := f.of(args)
			if err != nil {
				return err
			}
			n, err := o.inNamespace(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(o, cmd.OutOrStdout(), size, auditColumns(), api.Each(func(p api.Page) (*api.List[api.AuditEvent], error) {
				return n.ListAudit(cmd.Context(), of, p)
			}))
		},
	}
	f.flags(cmd)
	sizeFlag(cmd, &size)
	return cmd
}
