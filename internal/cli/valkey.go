package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// NewValkey returns the commands on the Valkey or Redis server of a fleet.
func NewValkey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "valkey",
		Short: "Prepare a Valkey or Redis server for the table of a fleet",
		Long: `valkey checks the server of a fleet, and makes the table on it. The server is that of
the configuration, or of --address.

  ratelimit valkey check                     can the server have a table, and is there one?
  ratelimit valkey create                    make the table`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newValkeyCheck(), newValkeyCreate())
	return cmd
}

// valkeyFlags name a server and a table.
type valkeyFlags struct {
	command.Source
	addresses []string
	table     string
}

func (f *valkeyFlags) flags(cmd *cobra.Command) {
	f.Flags(cmd)
	cmd.Flags().StringSliceVar(&f.addresses, "address", nil, "address of the server, host:port (default: that of the configuration)")
	cmd.Flags().StringVar(&f.table, "table", "", "name of the table (default: that of the configuration, or "+valkey.DefaultName+")")
}

// settings returns those of the configuration, with the flags in place of its values. Without a
// configuration --address is enough.
func (f *valkeyFlags) settings() (valkey.Config, error) {
	at := config.Valkey{Table: valkey.DefaultName}
	if f.File != "" || f.Demo || len(f.Rules) > 0 || len(f.addresses) == 0 {
		cfg, err := f.Load()
		if err != nil {
			return valkey.Config{}, fmt.Errorf("--address is missing, and the configuration names no server: %w", err)
		}
		if cfg.Store.Type != config.StoreValkey && len(f.addresses) == 0 {
			return valkey.Config{}, fmt.Errorf("store.type is %s: name a server with --address, or a configuration with store.type: valkey", cfg.Store.Type)
		}
		at = cfg.Store.Valkey
	}
	if len(f.addresses) > 0 {
		at.Addresses = f.addresses
	}
	if f.table != "" {
		at.Table = f.table
	}
	return server.ValkeyConfig(&at), at.Check()
}

func newValkeyCheck() *cobra.Command {
	var f valkeyFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show a server, and whether it can have a table",
		Long: `check connects to the server, and shows its version, its role, what it does when its
memory is full, its persistence and its replicas. In a cluster it shows each primary that
is for a part of the table. It changes nothing. It exits with 1 unless there is a table
that can be used.`,
		Example: "  ratelimit valkey check --config ratelimit.yaml\n  ratelimit valkey check --address 127.0.0.1:6379",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.settings()
			if err != nil {
				return err
			}
			now := time.Now()
			servers, table, err := valkey.Check(cmd.Context(), cfg)
			for _, of := range servers {
				if err := printServer(cmd.OutOrStdout(), of, now); err != nil {
					return command.Failed(err)
				}
			}
			if err := errors.Join(err, table); err != nil {
				return command.Failed(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: the table %s is there\n", cfg.Name)
			return command.Failed(err)
		},
	}
	f.flags(cmd)
	return cmd
}

// clusterText says which server of a cluster it is, and how much of the table it has.
func clusterText(s *valkey.Server) string {
	if !s.Cluster {
		return "no"
	}
	return fmt.Sprintf("yes: %d of %d parts of the table are for the primary at %s", s.Parts, valkey.Parts, s.Address)
}

// printServer prints the state of a server that was read at a time of this machine.
func printServer(out io.Writer, s *valkey.Server, now time.Time) error {
	bound := "of any amount"
	if s.MaxMemory > 0 {
		bound = fmt.Sprintf("of %d MiB", s.MaxMemory>>20)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"version", s.Version},
		{"role", s.Role},
		{"cluster", clusterText(s)},
		{"maxmemory-policy", s.Eviction},
		{"persistence", s.Persistence},
		{"memory", fmt.Sprintf("%d MiB %s", (s.Memory+1<<19)>>20, bound)},
		{"replicas", strconv.Itoa(s.Replicas)},
		{"clock", fmt.Sprintf("%v from this machine's", s.Time.Sub(now.Round(0)).Round(time.Millisecond))},
	} {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return w.Flush()
}

func newValkeyCreate() *cobra.Command {
	var f valkeyFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the table of a fleet on a server",
		Long: `create makes the table, unless it is there. It makes also a new table in the place of
one that the server has lost: stored limits and entities are gone then, and replicas
that run go on with it.`,
		Example: "  ratelimit valkey create --config ratelimit.yaml",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.settings()
			if err != nil {
				return err
			}
			made, err := valkey.Create(cmd.Context(), cfg)
			if err != nil {
				return command.Failed(err)
			}
			text := "table %s exists already\n"
			if made {
				text = "table %s created\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, cfg.Name)
			return command.Failed(err)
		},
	}
	f.flags(cmd)
	return cmd
}
