// Package admission holds the rules of admission that ship with Celsius, as YAML: what is filled in and what is refused,
// one file a kind.
package admission

import "embed"

// FS has KIND.yaml, in lower case.
//
//go:embed *.yaml
var FS embed.FS
