package statemachines

import "embed"

// shipped has the machines that Celsius comes with.
//
//go:embed job.yaml queue.yaml cronjob.yaml jobflow.yaml
var shipped embed.FS
