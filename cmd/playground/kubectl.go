package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

// runKubectl runs kubectl for the running playground: the one that was started last, or the one of --kubeconfig. It ignores $KUBECONFIG, so
// that no other cluster is changed by mistake.
func runKubectl(args []string, in io.Reader, out, errs io.Writer) int {
	if !namesCluster(args) {
		path, err := runningKubeconfig()
		if err != nil {
			say(errs, "playground: %v", err)
			return exitFailed
		}
		// kubectl caches the served kinds by address, and another playground may have had the same address.
		cache := filepath.Join(filepath.Dir(path), "kubectl-cache")
		args = append([]string{"--kubeconfig", path, "--cache-dir", cache}, args...)
	}
	// For a mistake that kubectl itself finds, kubectl ends the process here, with its own message and exit code.
	if err := newKubectl(args, genericiooptions.IOStreams{In: in, Out: out, ErrOut: errs}).Execute(); err != nil {
		say(errs, "error: %v", err)
		return exitFailed
	}
	return exitOK
}

// namesCluster reports whether the arguments name a cluster, or need none.
func namesCluster(args []string) bool {
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h", "kustomize", "completion", "options"}, args[0]) {
		return true
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return flag == "--kubeconfig" || flag == "--server" || flag == "-s"
	})
}

// newKubectl returns the kubectl command with its arguments.
func newKubectl(args []string, streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams)
	command := kubectl.NewKubectlCommand(kubectl.KubectlOptions{ConfigFlags: flags, IOStreams: streams})
	command.SilenceErrors = true
	command.SilenceUsage = true
	command.SetArgs(args)
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	return command
}
