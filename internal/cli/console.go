package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

const (
	maxStatus          = 1 << 20         // bytes of a status
	consoleConnections = 64              // at the listener; a browser has 6
	consoleEnd         = 2 * time.Second // for the last answers
)

// consoleFlags are those of the command console.
type consoleFlags struct {
	connection
	data   string // directory of the service to find
	config string // file of the service to find
	port   uint16 // to answer on; 0 = a free one
	open   bool
}

// NewConsole returns the command console.
func NewConsole() *cobra.Command {
	var f consoleFlags
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open the console of a running service in a browser",
		Long: `console prints an address of this machine to open in a browser, and answers there until
Ctrl-C. The console acts with the credential of this command: the admin socket, a token,
a certificate or a context. The browser never has it, and the audit names its principal.

The link is good for one login, within a minute. It works for a service on this machine
and for a remote one. For a browser on another machine forward the port:
ssh -L 8082:127.0.0.1:8082 HOST ratelimit console --port 8082`,
		Example: `  ratelimit console
  ratelimit console --open --context production
  ratelimit console --data /var/lib/ratelimit --port 8082
  ratelimit console --server https://ratelimit:8082 --token-file /run/secrets/token`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.find(cmd.Context(), f.data, f.config); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	f.flags(cmd.Flags(), adminUsage)
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "configuration file of the service to ask (default: "+command.DefaultFile+" in the working directory, if it exists)")
	cmd.Flags().StringVar(&f.data, "data", "", "data directory of the service to ask")
	cmd.Flags().Uint16Var(&f.port, "port", 0, "port of 127.0.0.1 to answer on; 0 is a free one")
	cmd.Flags().BoolVar(&f.open, "open", false, "open the browser of this user, too")
	return cmd
}

// run answers a browser until the context ends.
func (f *consoleFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	base, err := url.Parse(f.url(""))
	if err != nil {
		return errors.New("--server is no URL: it must be unix:///PATH or https://HOST:PORT")
	}
	status, err := f.status(ctx)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.port))))
	if err != nil {
		return command.Failed(fmt.Errorf("--port: %w", err))
	}
	proxy := newConsoleProxy(consoleProxyConfig{Service: &f.connection, Base: base, Address: listener.Addr().String(), Now: time.Now})
	cmd.PrintErrf("The console of %s, version %s, as %s with the role %s. The link is good for one login within %d seconds. Ctrl-C ends the console.\n",
		f.server, status.Version, api.Name(status.Principal), status.Role, int(consoleLoginTime.Seconds()))
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), proxy.Link()); err != nil {
		return command.Failed(errors.Join(err, listener.Close()))
	}
	group, ctx := errgroup.WithContext(ctx)
	serveConsole(ctx, group, listener, proxy)
	if f.open {
		group.Go(func() error {
			if err := openBrowser(ctx, proxy.Link()); err != nil && ctx.Err() == nil {
				cmd.PrintErrf("no browser was opened: %v\n", err)
			}
			return nil
		})
	}
	return command.Failed(group.Wait())
}

// status returns the version of the service, and the principal that it takes this command for.
func (f *consoleFlags) status(ctx context.Context) (*api.Status, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url("/v1/status"), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := f.do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	status := new(api.Status)
	if err := api.ReadAnswer(io.LimitReader(resp.Body, maxStatus), status); err != nil {
		return nil, command.Failed(fmt.Errorf("%s does not answer like this service: %w", f.server, err))
	}
	return status, nil
}

// serveConsole answers at a listener until the context ends.
func serveConsole(ctx context.Context, group *errgroup.Group, listener net.Listener, proxy http.Handler) {
	door := admin.NewDoor(listener, consoleConnections)
	server := &http.Server{
		Handler: proxy, ConnContext: door.ConnContext,
		ReadHeaderTimeout: admin.ControlTimeout / 3, ReadTimeout: admin.ControlTimeout, WriteTimeout: admin.ControlTimeout, IdleTimeout: admin.ControlTimeout,
		MaxHeaderBytes: admin.ControlMaxHeader,
	}
	group.Go(func() error {
		if err := server.Serve(door); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), consoleEnd)
		defer stop()
		if server.Shutdown(ending) != nil { // an answer took longer
			_ = server.Close()
		}
		return nil
	})
}
