// Package environment reads the environment variables of envoyproxy/ratelimit, so that this program starts where that
// one is started: by its manifests, without arguments.
//
// The variables are defaults: a configuration file or a flag wins. Some variables are honoured. Some are accepted: they
// ask for the state that exists already, or set up an unused store. A Redis server is the store. The log names the rest as without effect.
package environment
