package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// identifyTime bounds the time in which the services of this machine say which file they run with.
const identifyTime = 5 * time.Second

// fileService is the service that runs with a configuration file. Only its own word tells it from others.
type fileService struct {
	file     string   // absolute
	mistakes string   // of the file; "" = it is in order
	places   []string // sockets that the file or --data names, the best first
	relative string   // the name that they are made of, where it is relative
	only     bool     // it is in no other place
}

// neighbor is a service of this machine.
type neighbor struct {
	socket string
	file   string // absolute name of its configuration file, or the name of one that is built in; "" = none
	err    error  // why it does not say
}

// newFileService reads of a file where the socket may be. A file with mistakes has guesses: the service
// runs with the file before.
func newFileService(data, file string) (*fileService, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, command.Failed(err)
	}
	f := &fileService{file: path, only: data != ""}
	cfg, err := config.Load(file, config.Options{})
	problems, wrong := errors.AsType[yamlcfg.Problems](err)
	switch {
	case wrong && data != "":
		f.mistakes = problems.Error()
		return f, f.addPlace(filepath.Join(data, server.SocketName))
	case wrong:
		f.mistakes = problems.Error()
		return f, f.guess()
	case err != nil:
		return nil, err
	case data != "":
		cfg.Store.Type, cfg.Store.Embedded.Data = config.StoreEmbedded, data
	case cfg.Server.Admin.Address == config.AdminOff:
		return nil, command.Failed(errors.New("the configuration says server.admin.address: off, so there is no admin listener"))
	}
	socket := server.AdminSocket(cfg)
	if socket == "" {
		return f, nil
	}
	return f, f.addPlace(socket)
}

// maxGuesses bounds the places that are guessed from a file with mistakes.
const maxGuesses = 8

// placePattern finds the values of data and of address in the text of a file, also of one that is not valid YAML.
var placePattern = regexp.MustCompile(`\b(?:data:\s+|address:\s+["']?unix:)["']?([^\s,"'{}#]+)`)

// guess adds the places that the text of a file seems to name.
func (f *fileService) guess() error {
	text, err := config.ReadFile(f.file, maxBytes)
	if err != nil {
		return err
	}
	for _, m := range placePattern.FindAllSubmatch(text, maxGuesses) {
		name := string(m[1])
		if strings.HasPrefix(string(m[0]), "data") {
			name = filepath.Join(name, server.SocketName)
		}
		if err := f.addPlace(name); err != nil {
			return err
		}
	}
	return nil
}

// addPlace adds a socket. A service resolves a relative name from its working directory, which is often this
// one or that of the file.
func (f *fileService) addPlace(name string) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return command.Failed(err)
	}
	f.places = append(f.places, path)
	if beside := filepath.Join(filepath.Dir(f.file), name); !filepath.IsAbs(name) && !f.only {
		f.relative = name
		if beside != path {
			f.places = append(f.places, beside)
		}
	}
	return nil
}

// find returns the socket at which the service answers.
func (f *fileService) find(ctx context.Context) (socket string, err error) {
	ctx, stop := context.WithTimeout(ctx, identifyTime)
	defer stop()
	var others, mine []neighbor
	for _, place := range f.places {
		n := identify(ctx, place)
		switch {
		case f.is(&n) || errors.Is(n.err, fs.ErrPermission): // the request says who may
			return place, nil
		case n.answers():
			others = append(others, n)
		}
	}
	for _, place := range f.elsewhere(ctx) {
		n := identify(ctx, place)
		if f.is(&n) {
			mine = append(mine, n)
		} else {
			others = append(others, n)
		}
	}
	switch len(mine) {
	case 1:
		return mine[0].socket, nil
	case 0:
		return "", f.missing(others)
	default:
		return "", command.Failed(fmt.Errorf("%d services run here with %s: say which with --server: %s", len(mine), f.file, neighborsText(mine)))
	}
}

// elsewhere returns the sockets of a run directory, if the service can be there.
func (f *fileService) elsewhere(ctx context.Context) []string {
	if f.only {
		return nil
	}
	return server.FindSocket(ctx)
}

// identify asks the service at a socket which file it runs with.
func identify(ctx context.Context, socket string) neighbor {
	n := neighbor{socket: socket}
	c := &connection{server: "unix://" + socket}
	status, err := api.NewClient(c, c.url("")).Status(ctx)
	if err != nil {
		n.err = err
	} else if len(status.Files) > 0 {
		n.file = status.Files[0]
	}
	return n
}

// answers reports whether there is a service at all.
func (n *neighbor) answers() bool {
	code, _ := command.ExitCode(n.err)
	return code != command.ExitSilence
}

// is reports whether a service runs with the file.
func (f *fileService) is(n *neighbor) bool {
	if n.err != nil || !filepath.IsAbs(n.file) {
		return false
	}
	if n.file == f.file {
		return true
	}
	theirs, err := os.Stat(n.file)
	if err != nil {
		return false
	}
	ours, err := os.Stat(f.file)
	return err == nil && os.SameFile(theirs, ours)
}

// missing is the error where no service runs with the file, as far as can be seen here.
func (f *fileService) missing(others []neighbor) error {
	text := "no service with the configuration file " + f.file + " was found"
	if len(f.places) > 0 && !slices.ContainsFunc(others, func(n neighbor) bool { return slices.Contains(f.places, n.socket) }) {
		text += ": no service answers at " + f.places[0]
	}
	if f.relative != "" {
		text += ", and " + f.relative + " is relative to the directory in which serve was started"
	}
	if len(others) > 0 {
		text += "; " + neighborsText(others)
	}
	text += "; start the service, or say which: --server unix://PATH, --data DIR for one that serve --data started, or --context NAME"
	if f.mistakes != "" {
		return command.Misused(fmt.Errorf("%s\nthe file has mistakes: a service may still run with the file before, and --data DIR finds it\n%s", text, f.mistakes))
	}
	return command.Unanswered(errors.New(text))
}

// neighborsText says which services run on this machine.
func neighborsText(all []neighbor) string {
	texts := make([]string, 0, len(all))
	for _, n := range all {
		file := "runs with " + n.file
		switch {
		case n.err != nil:
			file = "does not say which file it has"
		case n.file == "":
			file = "runs without a file"
		case n.file == config.ShippedName:
			file = "runs with the example rules of --demo"
		}
		texts = append(texts, "unix://"+n.socket+" "+file)
	}
	return strings.Join(texts, "; ")
}
