// Package deploy holds tests of the files that install and watch the service: alerts, the
// dashboard and the module of Terraform. It is a module of its own, so that the program does
// not depend on their parsers.
package deploy
