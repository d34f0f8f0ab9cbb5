// Package tables holds the scheduling tables that ship with Celsius, as YAML: one for each of
// Volcano's plugins, the definitions of the actions, and the default policy.
package tables

import "embed"

// FS has NAME.yaml for every table, actions.yaml and default.yaml.
//
//go:embed *.yaml
var FS embed.FS
