package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
)

// find sets the server, unless it was named or is in the environment, to the admin listener of a service: the one
// with a data directory, the one with a configuration file, else the only one in the run directory. Like
// serve it takes the file in the working directory where no other is named.
func (c *connection) find(ctx context.Context, data, file string) error {
	if done, err := c.findNamed(data != "" || file != ""); done || err != nil {
		return err
	}
	switch {
	case file != "":
		return c.findByFile(ctx, data, file)
	case data != "":
		path, err := filepath.Abs(filepath.Join(data, server.SocketName))
		c.server, c.way = "unix://"+path, "by --data"
		return command.Failed(err)
	case fileBeside() != "":
		return c.findByFile(ctx, "", command.DefaultFile)
	default:
		return c.findRunning(ctx)
	}
}

// fileBeside returns the configuration file in the working directory; "" = there is none.
func fileBeside() string {
	path, err := filepath.Abs(command.DefaultFile)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// findNamed sets the server that a flag, the environment or a context names, if one does. Here
// says that flags name a service of this machine, which wins over the environment.
func (c *connection) findNamed(here bool) (bool, error) {
	switch {
	case c.server != "" && c.context != "":
		return false, errors.New("--server and --context both name a service: leave one of them out")
	case c.server != "":
		c.way = "by --server"
		return true, nil
	case c.context != "":
		return c.useContext(c.context)
	case here:
		return false, nil
	}
	c.server = os.Getenv(ServerVariable)
	if c.server != "" {
		c.way = "by " + ServerVariable
		return true, nil
	}
	done, err := c.useContext("")
	if beside := fileBeside(); done && beside != "" {
		c.way += ", which comes before " + beside
	}
	return done, err
}

// findByFile finds the service that runs with a configuration file. No other service is used.
func (c *connection) findByFile(ctx context.Context, data, file string) error {
	wanted, err := newFileService(data, file)
	if err != nil {
		return err
	}
	socket, err := wanted.find(ctx)
	if err != nil {
		return err
	}
	c.server, c.way = "unix://"+socket, "by "+wanted.file
	return nil
}

func (c *connection) findRunning(ctx context.Context) error {
	found := server.FindSocket(ctx)
	switch len(found) {
	case 1:
		c.server, c.way = "unix://"+found[0], "the only one in a run directory"
		return nil
	case 0:
		return command.Unanswered(errors.New("no running service was found in a run directory: one that keeps a data directory is found with --data DIR or its --config FILE, any other with --server unix:///PATH"))
	default:
		return command.Failed(fmt.Errorf("%d services run here: say which with --server, one of unix://%s", len(found), strings.Join(found, ", unix://")))
	}
}

// answered says which server answers, and how it was found; "" = a table that no service is asked for.
func (c *connection) answered() string {
	if c.server == "" {
		return ""
	}
	return c.server + ", " + c.way
}
