package config

import _ "embed"

//go:embed ratelimit.yaml
var shipped string

// ShippedName is the name of the shipped configuration in problems and in Config.Files.
const ShippedName = "ratelimit.yaml (built in)"

// Shipped returns a copy of the configuration that comes with the program.
func Shipped() []byte { return []byte(shipped) }
