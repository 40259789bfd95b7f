// Package envoygateway tests the manifests of examples/envoy-gateway. Envoy Gateway reads them
// strictly. Their patches find their places in the configuration that Envoy Gateway makes of a
// Gateway. An Envoy with the result limits requests.
// The configuration is the output of `egctl x translate` that the module of Envoy Gateway has
// among its test data. This is a module of its own, so that the program's does not depend on
// Envoy Gateway.
package envoygateway
