package statemachines

import "embed"

// shipped has the machines that Celsius comes with.
//
//go:embed job.yaml jobflow.yaml queue.yaml
var shipped embed.FS
