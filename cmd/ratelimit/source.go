package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
)

const (
	// defaultFile is read where no other file is named.
	defaultFile = "ratelimit.yaml"
	// httpAddressVariable takes the place of the default of server.http.address: the
	// image sets it, so that probes reach the service with any flags.
	httpAddressVariable = "RATELIMIT_HTTP_ADDRESS"
)

// source says where the configuration comes from.
type source struct {
	file  string
	rules []string
	demo  bool
}

func (s *source) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.file, "config", "c", "", "configuration file (default: "+defaultFile+" in the working directory, if it exists)")
	cmd.Flags().StringArrayVar(&s.rules, "rules", nil, "file or directory with more domains; may be repeated")
	cmd.Flags().BoolVar(&s.demo, "demo", false, "use the example rules in the program, to try it; not with --config")
}

// resolve finds the file where none is named.
func (s *source) resolve() error {
	switch {
	case s.demo && s.file != "":
		return errors.New("--demo uses the example rules in the program, and --config a file: leave one of them out")
	case s.demo || s.file != "":
		return nil
	}
	switch _, err := os.Stat(defaultFile); {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		s.file = defaultFile
	case len(s.rules) == 0:
		return fmt.Errorf("no configuration: name a file with --config, or have %s in the working directory; --demo uses example rules, to try the program", defaultFile)
	}
	return nil
}

// options are those that the files are loaded and watched with.
func (s *source) options() config.Options {
	return config.Options{Rules: s.rules, Demo: s.demo, HTTPAddress: os.Getenv(httpAddressVariable)}
}

func (s *source) load() (*config.Config, error) {
	if err := s.resolve(); err != nil {
		return nil, err
	}
	return config.Load(s.file, s.options())
}

// check returns the command that shows the mistakes of the configuration.
func (s *source) check() string {
	command := []string{"ratelimit check"}
	if s.demo {
		command = append(command, "--demo")
	}
	if s.file != "" {
		command = append(command, "--config", s.file)
	}
	for _, rules := range s.rules {
		command = append(command, "--rules", rules)
	}
	return strings.Join(command, " ")
}
