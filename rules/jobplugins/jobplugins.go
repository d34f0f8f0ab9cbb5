// Package jobplugins holds the job plugins that ship with Celsius, as YAML: what they add to the pods of a Job, and which objects
// they make beside it, one file a plugin.
package jobplugins

import "embed"

// FS has NAME.yaml.
//
//go:embed *.yaml
var FS embed.FS
