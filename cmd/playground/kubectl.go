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

// runKubectl is kubectl, for the playground that runs: the one that was started last, or the
// one of --kubeconfig. $KUBECONFIG is not looked at, so no other cluster is touched by chance.
func runKubectl(args []string, in io.Reader, out, errs io.Writer) int {
	if !namesCluster(args) {
		path, err := runningKubeconfig()
		if err != nil {
			say(errs, "playground: %v", err)
			return exitFailed
		}
		// kubectl remembers by address which kinds are served, and another playground may
		// have had this one's.
		cache := filepath.Join(filepath.Dir(path), "kubectl-cache")
		args = append([]string{"--kubeconfig", path, "--cache-dir", cache}, args...)
	}
	// A mistake that kubectl itself finds ends the process here, with its words and its code.
	if err := newKubectl(args, genericiooptions.IOStreams{In: in, Out: out, ErrOut: errs}).Execute(); err != nil {
		say(errs, "error: %v", err)
		return exitFailed
	}
	return exitOK
}

// namesCluster says whether the arguments say which cluster is meant, or need none.
func namesCluster(args []string) bool {
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h", "kustomize", "completion", "options"}, args[0]) {
		return true
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return flag == "--kubeconfig" || flag == "--server" || flag == "-s"
	})
}

// newKubectl is the command with its arguments.
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
