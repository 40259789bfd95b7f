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
	"github.com/ratelimit/ratelimit/pkg/client"
)

func auditColumns() []command.Column[api.AuditEvent] {
	return []command.Column[api.AuditEvent]{
		{Title: "TIME", Value: func(e api.AuditEvent) string { return e.Time.UTC().Format(time.RFC3339) }},
		{Title: "PRINCIPAL", Value: func(e api.AuditEvent) string { return dash(e.Principal) }},
		{Title: "ACTION", Value: func(e api.AuditEvent) string { return e.Action }},
		{Title: "SUBJECT", Value: subjectOf},
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

func listAudit(o *operator) *cobra.Command {
	var f levelFlags
	var from, to string
	var limit int
	cmd := &cobra.Command{
		Use: "audit [SUBJECT]", Short: "List who changed an entity or limits", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completer{o}.subject,
		Long: `list audit shows the changes of an entity and its limits (--entity), of the limits of a
resource (--resource), or of those of the system (--system), the newest first: when, by
which credential, and the record before and after. SUBJECT says the same in one word, as the
column SUBJECT does: an entity, '$RESOURCE:name' or '$SYSTEM'.`,
		Example: `  ratelimit list audit --entity key/k-123
  ratelimit list audit '$RESOURCE:gpt-4'
  ratelimit list audit --system --limit 10 -o json
  ratelimit list audit key/k-123 --from 2026-11-22 --to 2026-11-23`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.subjectFrom(args); err != nil {
				return err
			}
			of, err := f.of()
			if err != nil {
				return errors.New("say whose audit: an entity, '$RESOURCE:name' or '$SYSTEM', or --entity ID, --resource NAME or --system")
			}
			events := client.AuditOf{Entity: of.Entity, Resource: of.Resource}
			if events.From, events.To, err = parseUsageTimes(from, to); err != nil {
				return err
			}
			n, err := o.inNamespace(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(o, cmd.OutOrStdout(), limit, auditColumns(), client.Each(func(p client.Page) (*api.List[api.AuditEvent], error) {
				return n.ListAudit(cmd.Context(), events, p)
			}))
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "only events at this time or later, such as 2026-11-22T09:00:00Z, 2026-11-22 or 2026-11")
	cmd.Flags().StringVar(&to, "to", "", "only events before this time")
	limitFlag(cmd, &limit)
	return cmd
}
