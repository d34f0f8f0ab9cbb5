package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/celsius-scheduler/celsius/cmd/playground/bench"
)

// kubeSchedulerConfig is the configuration of kube-scheduler. It is the default, except that leader election is off and the client has the
// same limits as ours.
const kubeSchedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 2000, burst: 4000}
`

// newKubeSchedulerCommand creates the command that bench-live starts as a process, with KUBECONFIG set.
func newKubeSchedulerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    bench.KubeScheduler,
		Short:  "Run Kubernetes' own scheduler; bench-live starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, err := os.CreateTemp("", "kube-scheduler-*.yaml")
			if err != nil {
				return fmt.Errorf("configuration: %w", err)
			}
			defer func() { _ = os.Remove(file.Name()) }()
			_, err = fmt.Fprintf(file, kubeSchedulerConfig, os.Getenv("KUBECONFIG"))
			if err != nil {
				return fmt.Errorf("configuration: %w", err)
			}
			if err := file.Close(); err != nil {
				return fmt.Errorf("configuration: %w", err)
			}
			kube := app.NewSchedulerCommand()
			// It serves nothing. Its log has the default level, except the line that reports the start.
			kube.SetArgs([]string{"--config", file.Name(), "--secure-port", "0", "--vmodule", "server=3"})
			return kube.ExecuteContext(c.Context())
		},
	}
}
