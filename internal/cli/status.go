package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// statusFlags are those of the command status.
type statusFlags struct {
	operator

	watch    bool
	interval time.Duration
}

// NewStatus returns the command status.
func NewStatus() *cobra.Command {
	f := new(statusFlags)
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of a service, and what needs a person", Args: command.NoArgs,
		Long: `status shows the replica that answers: its store, the configuration in force and a newer one
that was refused, leases, memory, and the role of this user. Below are the problems that need
a person, each with the next step. ratelimit doctor looks further.

Exit codes: 0 all is well; 1 something needs a person; 3 no service answers.`,
		Example: `  ratelimit status
  ratelimit status --watch
  ratelimit status -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.interval < 100*time.Millisecond || f.interval > time.Hour {
				return fmt.Errorf("--interval is %v; it must be 100ms to 1h", f.interval)
			}
			c, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			if f.watch {
				return f.show(cmd, c)
			}
			return f.once(cmd, c)
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it on this terminal, again and again, until q or Ctrl-C")
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "with --watch: time from one page to the next")
	return cmd
}

// once shows the status, and fails quietly if there is a problem.
func (f *statusFlags) once(cmd *cobra.Command, c *api.Client) error {
	s, err := c.Status(cmd.Context())
	if err != nil {
		return f.refusal(err)
	}
	if f.output == command.OutputJSON || f.output == command.OutputYAML {
		err = command.WriteOne[any](cmd.OutOrStdout(), f.output, nil, nil, s)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), statusPage(s, f.answered(), f.output == command.OutputWide))
		err = command.Failed(err)
	}
	if err == nil && len(s.Problems) > 0 {
		return command.Refused()
	}
	return err
}

// show keeps the status on the terminal. A service that does not answer is shown as such.
func (f *statusFlags) show(cmd *cobra.Command, c *api.Client) error {
	in, _ := cmd.InOrStdin().(*os.File)
	out, _ := cmd.OutOrStdout().(*os.File)
	screen := &liveScreen{In: in, Out: out, Every: f.interval}
	switch {
	case f.output == command.OutputJSON || f.output == command.OutputYAML:
		return errors.New("--watch shows a page: leave out --output, or --watch")
	case in == nil || out == nil || !screen.IsTerminal():
		return errors.New("--watch needs a terminal: leave it out, or repeat the command")
	}
	return screen.Run(cmd.Context(), func(ctx context.Context) (string, error) {
		at := time.Now().UTC().Format(time.TimeOnly) + " UTC   (q ends)\n\n"
		s, err := c.Status(ctx)
		if err != nil {
			return at + "no answer: " + f.refusal(err).Error() + "\n", nil
		}
		// problems first: a small terminal cuts the end
		return at + problemsText(s.Problems) + "\n" + statusTable(s, f.answered(), f.output == command.OutputWide), nil
	})
}

// statusLine is a line of the page.
type statusLine struct{ name, value string }

// statusPage is a status for people.
func statusPage(s *api.Status, answered string, wide bool) string {
	return statusTable(s, answered, wide) + "\n" + problemsText(s.Problems)
}

// statusTable is a status without its problems. It has the server that answered, if one did. A wide one has the files and
// the whole hash of the configuration.
func statusTable(s *api.Status, answered string, wide bool) string {
	var lines []statusLine
	if answered != "" {
		lines = append(lines, statusLine{"server", answered})
	}
	lines = append(lines, statusLine{"version", s.Version})
	lines = append(lines, statusLine{"you", fmt.Sprintf("%s, role %s", dash(s.Principal), s.Role)}, statusLine{"store", storeText(s)})
	if st := s.StoreState; st != nil && st.Cause != "" {
		lines = append(lines, statusLine{"calls end in", strings.Join(strings.Fields(st.Cause), " ")})
	}
	lines = append(lines, statusLine{"keeps", keepsText(s.Can)})
	if !s.Started.IsZero() {
		lines = append(lines, presentLines(s, wide)...)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	for _, l := range lines {
		_, _ = fmt.Fprintf(w, "%s:\t%s\n", l.name, l.value) // a builder takes everything
	}
	_ = w.Flush()
	return text.String()
}

// presentLines are those of a running service.
func presentLines(s *api.Status, wide bool) []statusLine {
	ready := "yes"
	if s.Ready != nil && !*s.Ready {
		ready = "no: " + s.Reason
	}
	lines := []statusLine{{"uptime", (time.Duration(s.UptimeSeconds) * time.Second).String()}, {"ready", ready}}
	if c := s.Configuration; c != nil {
		text := fmt.Sprintf("%.12s, loaded at %s", dash(c.Hash), command.Moment(c.LoadedAt))
		if wide {
			text = fmt.Sprintf("%s, loaded at %s, of %s", dash(c.Hash), command.Moment(c.LoadedAt), dash(strings.Join(s.Files, ", ")))
		}
		lines = append(lines, statusLine{"configuration", text})
		if c.Error != "" {
			lines = append(lines, statusLine{"refused", fmt.Sprintf("newer files, at %s: %s", command.Moment(c.ErrorAt), c.Error)})
		}
	}
	if len(s.LimitsNotDefined) > 0 {
		lines = append(lines, statusLine{"not defined", "limits " + strings.Join(s.LimitsNotDefined, ", ")})
	}
	if s.StoreState != nil {
		lines = append(lines, statusLine{"leases", strconv.FormatInt(s.Leases, 10)}, statusLine{"replicas", replicasText(s.Replicas, wide)})
	}
	if a := s.Aggregator; a != nil {
		lines = append(lines, statusLine{"aggregator", a.Text})
	}
	return append(lines, statusLine{"memory", fmt.Sprintf("%d MiB", s.MemoryBytes>>20)})
}

// replicasText counts the replicas that are known, and those that are ready. A wide one names each.
func replicasText(all []api.Replica, wide bool) string {
	ready := 0
	names := make([]string, 0, len(all))
	for _, r := range all {
		if r.Ready {
			ready++
		}
		names = append(names, r.ID+" on "+dash(r.Host))
	}
	text := fmt.Sprintf("%d seen, %d ready", len(all), ready)
	if wide {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

// storeText describes the store and its state.
func storeText(s *api.Status) string {
	st := s.StoreState
	switch {
	case st == nil && s.Store == "embedded": // without "with data"
		return "embedded, in memory: all of it ends with the process"
	case st == nil:
		return s.Store
	}
	text := s.Store + ", " + st.State
	if !st.Since.IsZero() {
		text += " since " + command.Moment(st.Since)
	}
	return text + "; " + st.Policy + " decides where it does not answer"
}

// keepsText names the kinds of records that a store keeps.
func keepsText(can api.Capabilities) string {
	parts := []string{"entities", "limits"}
	for _, c := range []struct {
		has  bool
		name string
	}{{can.Buckets, "balances"}, {can.Audit, "audit"}, {can.Usage, "usage"}} {
		if c.has {
			parts = append(parts, c.name)
		}
	}
	return strings.Join(parts, ", ")
}

// problemText describes a problem, and says since when it is there where that is known.
func problemText(p *api.StatusProblem) string {
	if p.Since.IsZero() {
		return p.What
	}
	return p.What + " (since " + command.Moment(p.Since) + ")"
}

// problemsText lists problems with their next steps.
func problemsText(all []api.StatusProblem) string {
	if len(all) == 0 {
		return "nothing needs a person\n"
	}
	var text strings.Builder
	text.WriteString("needs a person:\n")
	for _, p := range all {
		fmt.Fprintf(&text, "- %s\n  next: %s\n", problemText(&p), p.Do)
	}
	return text.String()
}
