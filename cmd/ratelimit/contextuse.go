package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/ratelimit/ratelimit/internal/contexts"
)

// contextVariable is the environment variable that names the context in use.
const contextVariable = "RATELIMIT_CONTEXT"

// currentContext is the name of the context in use; "" = none.
func currentContext(f *contexts.File) string { return cmp.Or(os.Getenv(contextVariable), f.Current) }

// useContext has the connection reach the service of a context: the named one, else the one in
// use. It reports whether there is one. Flags of the command win over those of the context.
func (c *connection) useContext(name string) (bool, error) {
	f, err := loadContexts()
	if err != nil {
		return false, err
	}
	name = cmp.Or(name, currentContext(f))
	if name == "" {
		return false, nil
	}
	from, err := f.Find(name)
	if err != nil {
		return false, err
	}
	if from.TokenEnv != "" && c.tokenFile == "" && os.Getenv(from.TokenEnv) == "" {
		return false, fmt.Errorf("context %s: its token is in the environment variable %s, which is not set", name, from.TokenEnv)
	}
	c.server, c.namespace = from.Server, from.Namespace
	c.ca = cmp.Or(c.ca, from.CA)
	if c.cert == "" && c.key == "" {
		c.cert, c.key = from.Cert, from.Key
	}
	if c.tokenFile == "" {
		c.tokenFile, c.tokenEnv = from.TokenFile, from.TokenEnv
	}
	return true, nil
}
