// Package jobplugins contains the built-in job plugins as YAML: what they add to the pods of a Job, and which objects they create in
// addition. There is one file for each plugin.
package jobplugins

import "embed"

// FS contains NAME.yaml for each plugin.
//
//go:embed *.yaml
var FS embed.FS
