package statemachines

import "embed"

// shipped contains the built-in machines.
//
//go:embed job.yaml queue.yaml cronjob.yaml jobflow.yaml
var shipped embed.FS
