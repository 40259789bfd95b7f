// Package chart tests the Helm chart of charts/ratelimit, the Kustomize base of
// examples/kustomize and the Compose file of examples/compose: that Kubernetes and
// Compose read them, strictly, and that the program runs in the containers that they describe.
// It is a module of its own, so that the program's does not depend on Kubernetes.
package chart
