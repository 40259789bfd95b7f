// Package istio tests the manifests of examples/istio: that they are what Istio and
// Envoy read, strictly, and that an Envoy with the patches applied limits as they say.
// It is a module of its own, so that the program's does not depend on Istio.
package istio
