// Package istio tests the manifests of examples/istio: that Istio and Envoy read them,
// strictly, and that an Envoy with the patches applied limits as they say. It is a
// module of its own, so that the program's does not depend on Istio.
package istio
