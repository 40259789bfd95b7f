// Package environment reads the environment variables of envoyproxy/ratelimit, so that this program starts where that
// one is started: by its manifests, without arguments.
//
// The variables are defaults: what a configuration file or a flag says wins. Each variable of that service is honoured,
// accepted because it asks for what is so already or concerns a store that is not used, or named as without effect.
package environment
