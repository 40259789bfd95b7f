package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// namedContext is a service and the credential for it.
type namedContext struct {
	Server    string `json:"server" yaml:"server"`                             // admin listener: unix:///PATH or https://HOST:PORT
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`   // of requests that name none; "" = the default
	CA        string `json:"ca,omitempty" yaml:"ca,omitempty"`                 // PEM file of the authorities to trust
	Cert      string `json:"cert,omitempty" yaml:"cert,omitempty"`             // PEM file of the certificate to show
	Key       string `json:"key,omitempty" yaml:"key,omitempty"`               // PEM file of its private key
	TokenFile string `json:"token_file,omitempty" yaml:"token_file,omitempty"` // file with the token to show
	TokenEnv  string `json:"token_env,omitempty" yaml:"token_env,omitempty"`   // environment variable with it
}

// Check reports the first mistake in a context.
func (c namedContext) Check() error {
	switch u, err := url.Parse(c.Server); {
	case err != nil:
		return errors.New("server is no URL: it must be unix:///PATH or https://HOST:PORT")
	case u.User != nil:
		return errors.New("server has a password in it: name a token with token_file or token_env")
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path+u.Opaque):
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
	default:
		return fmt.Errorf("server is %.100q; it must be unix:///PATH or https://HOST:PORT", c.Server)
	}
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("cert and key belong together: give both, or neither")
	case c.TokenFile != "" && c.TokenEnv != "":
		return errors.New("a token is in a file or in a variable: give token_file or token_env, not both")
	}
	return nil
}

// contextsFile has the contexts of a user.
type contextsFile struct {
	Current  string                  `yaml:"current,omitempty"` // name of the one in use; "" = none
	Contexts map[string]namedContext `yaml:"contexts"`

	path string
}

const (
	// maxBytes bounds the file.
	maxBytes = 1 << 20
	// maxName is the longest name of a context, in bytes.
	maxName = 63
)

// contextsPath returns where the file is: contexts.yaml below ratelimit in the user's configuration
// directory, which XDG_CONFIG_HOME names.
func contextsPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for a file of contexts: %w", err)
	}
	return filepath.Join(dir, "ratelimit", "contexts.yaml"), nil
}

// readContexts reads the file at a path. One that does not exist is empty. It refuses a file that others
// can write, since they could have a token sent to them.
func readContexts(path string) (*contextsFile, error) {
	f := &contextsFile{Contexts: make(map[string]namedContext), path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s can be written by others: chmod 600 %s", path, path)
	}
	data, err := config.ReadFile(path, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if problems := yamlcfg.Documents(path, data, f.read); len(problems) > 0 {
		return nil, problems
	}
	return f, nil
}

func (f *contextsFile) read(n yamlcfg.Node) {
	n.Fields(
		yamlcfg.Field{Name: "current", Read: yamlcfg.Text(&f.Current).Decode},
		yamlcfg.Field{Name: "contexts", Read: func(n yamlcfg.Node) { n.Entries("a context", f.readContext) }},
	)
}

func (f *contextsFile) readContext(name string, n yamlcfg.Node) {
	var c namedContext
	text := func(key string, out *string) yamlcfg.Field {
		return yamlcfg.Field{Name: key, Read: yamlcfg.Name(out).Decode}
	}
	n.Fields(text("server", &c.Server), text("namespace", &c.Namespace), text("ca", &c.CA), text("cert", &c.Cert),
		text("key", &c.Key), text("token_file", &c.TokenFile), text("token_env", &c.TokenEnv))
	err := checkContextName(name)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		n.Failf("%v", err)
	}
	f.Contexts[name] = c
}

// checkContextName refuses text that cannot name a context.
func checkContextName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	if name == "" || len(name) > maxName || strings.Trim(name, letters) != "" {
		return fmt.Errorf("the name of a context is %.100q; it must be 1 to %d letters, digits, hyphens, dots and underscores", name, maxName)
	}
	return nil
}

// Names are those of the contexts, in order.
func (f *contextsFile) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Find returns a context.
func (f *contextsFile) Find(name string) (namedContext, error) {
	if c, ok := f.Contexts[name]; ok {
		return c, nil
	}
	if near := limiter.ClosestName(name, f.Names()); near != "" {
		return namedContext{}, fmt.Errorf("there is no context %.100q; did you mean %q?", name, near)
	}
	if len(f.Contexts) == 0 {
		return namedContext{}, fmt.Errorf("there is no context %.100q: ratelimit context add %.100s --server URL makes it", name, name)
	}
	return namedContext{}, fmt.Errorf("there is no context %.100q; there are %s", name, strings.Join(f.Names(), ", "))
}

// Save writes the file, which its user alone can read. A crash leaves the old one or the new one.
func (f *contextsFile) Save() error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return config.ReplaceFile(f.path, text)
}
