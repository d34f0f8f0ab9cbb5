// Package tables contains the built-in scheduling tables as YAML: one for each of Volcano's plugins, the definitions of the actions, and
// the default policy.
package tables

import "embed"

// FS contains NAME.yaml for every table, actions.yaml and default.yaml.
//
//go:embed *.yaml
var FS embed.FS
