package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/environment"
)

const (
	// DefaultFile is read where no other file is named.
	DefaultFile = "ratelimit.yaml"
	// HTTPAddressVariable takes the place of the default of server.http.address: the
	// image sets it, so that probes reach the service with any flags.
	HTTPAddressVariable = "RATELIMIT_HTTP_ADDRESS"
	// ValkeyPasswordVariable is the password of the store valkey, where store.valkey.password_file names no file.
	ValkeyPasswordVariable = "RATELIMIT_VALKEY_PASSWORD" // #nosec G101 -- the name of it
)

// Source says where the configuration comes from.
type Source struct {
	File  string
	Rules []string
	Demo  bool
	XDS   string // host:port of a control plane; "" = the file's

	environment *environment.Settings // of envoyproxy/ratelimit; nil = it is not used
}

// Flags adds the flags that name the configuration.
func (s *Source) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.File, "config", "c", "", "configuration file (default: "+DefaultFile+" in the working directory, if it exists)")
	cmd.Flags().StringArrayVar(&s.Rules, "rules", nil, "file or directory with more domains; may be repeated")
	cmd.Flags().BoolVar(&s.Demo, "demo", false, "use the example rules in the program, to try it; not with --config")
}

// resolve finds the file where none is named.
func (s *Source) resolve() error {
	switch {
	case s.Demo && s.File != "":
		return errors.New("--demo uses the example rules in the program, and --config a file: leave one of them out")
	case s.Demo || s.File != "":
		return nil
	}
	switch _, err := os.Stat(DefaultFile); {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		s.File = DefaultFile
	case len(s.Rules) == 0 && s.XDS == "" && s.environment == nil:
		return fmt.Errorf("no configuration: name a file with --config, or have %s in the working directory; --demo uses example rules, to try the program", DefaultFile)
	}
	return nil
}

// Options are those that the files are loaded and watched with.
func (s *Source) Options() config.Options {
	o := config.Options{Rules: s.Rules, Demo: s.Demo, Defaults: s.defaults}
	if s.environment != nil && s.environment.Rules != "" && s.XDS == "" {
		o.Rules, o.AllFiles = append(slices.Clone(o.Rules), s.environment.Rules), true
	}
	return o
}

// defaults changes the defaults by the environment and the flags.
func (s *Source) defaults(c *config.Config) {
	c.Server.HTTP.Address = cmp.Or(os.Getenv(HTTPAddressVariable), c.Server.HTTP.Address)
	c.Store.Valkey.Password = os.Getenv(ValkeyPasswordVariable)
	if s.environment != nil {
		s.environment.Defaults(c)
	}
	c.XDS.Address = cmp.Or(s.XDS, c.XDS.Address)
}

// UseEnvironment makes the environment of envoyproxy/ratelimit the defaults, if it is set and no demo is asked for. It
// returns the settings; nil = there are none.
func (s *Source) UseEnvironment() (*environment.Settings, error) {
	_, missing := os.Stat(DefaultFile)
	if s.Demo || !environment.Start(os.LookupEnv, s.File != "" || len(s.Rules) > 0 || missing == nil) {
		return nil, nil //nolint:nilnil // none
	}
	var err error
	s.environment, err = environment.Read(os.LookupEnv)
	return s.environment, err
}

// SetEnvironment makes settings of another service the defaults.
func (s *Source) SetEnvironment(settings *environment.Settings) { s.environment = settings }

// Load reads the configuration. Its error is config.Problems where the files are wrong.
func (s *Source) Load() (*config.Config, error) {
	if err := s.resolve(); err != nil {
		return nil, err
	}
	return config.Load(s.File, s.Options())
}

// Check returns the command that shows the mistakes of the configuration, in this working directory.
func (s *Source) Check() string { return s.check(func(name string) string { return name }) }

// CheckAnywhere is Check for any working directory.
func (s *Source) CheckAnywhere() string { return s.check(Absolute) }

// Absolute returns the name of a file as any working directory has it, or as it is where that is not known.
func Absolute(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return path
}

func (s *Source) check(named func(string) string) string {
	command := []string{"ratelimit check"}
	if s.Demo {
		command = append(command, "--demo")
	}
	if s.File != "" {
		command = append(command, "--config", named(s.File))
	}
	for _, rules := range s.Options().Rules {
		command = append(command, "--rules", named(rules))
	}
	return strings.Join(command, " ")
}
