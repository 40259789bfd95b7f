// Package reference asks envoyproxy/ratelimit and this program the same calls, side by side, and compares their answers:
// with the examples of its README, its example files and its fixtures, which stand in its own module. Its integration
// scripts run against this program through a real Envoy. It is a module of its own, for the Redis that the service needs.
package reference
