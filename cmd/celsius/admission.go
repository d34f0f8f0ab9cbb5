package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/webhook"
)

func newAdmissionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "admission",
		Short: "Check rules of admission, or write them for a bare API server",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAdmissionCheckCommand(), newAdmissionRenderCommand())
	return c
}

func newAdmissionCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|FOLDER...",
		Short: "Compile rules of admission and print mistakes at their places",
		Long: `Check compiles rules of admission and prints the mistakes, each at its line and
column. A folder is read as --admission-rules of celsius webhook reads it; - is
standard input. The exit code is 0 if there are no mistakes, else 1.`,
		Example: "  celsius admission check quota.yaml\n  celsius admission check /etc/celsius/admission",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return checkAdmission(c.OutOrStdout(), c.InOrStdin(), args)
		},
	}
}

func checkAdmission(out io.Writer, in io.Reader, args []string) error {
	var issues source.Issues
	var lines []string
	for _, arg := range args {
		tables, found := readAs(arg, in, webhook.LoadFS, webhook.LoadFile)
		issues = append(issues, found...)
		for _, t := range tables {
			lines = append(lines, fmt.Sprintf("%s: rules of admission %q of %ss are right; rows: %d", arg, t.Name, t.Kind, t.Rows()))
		}
	}
	return tellChecked(out, issues, lines)
}

func newAdmissionRenderCommand() *cobra.Command {
	var o webhook.Options
	var machines, rules folderFlag
	var as string
	cmd := &cobra.Command{
		Use:   "render --as vap",
		Short: "Write rules of admission as policies of the API server",
		Long: `Render writes those rows of admission that refuse as ValidatingAdmissionPolicies
with their bindings, for clusters in which no webhook serves. They need
Kubernetes 1.34. What the API server cannot ask is listed at the top, with the
reason: what is filled in, warned of, looked up in the cluster, or computed by a
function that Kubernetes does not have. Flags are those of celsius webhook.`,
		Example: "  celsius admission render --as vap | kubectl apply -f -",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if as != "vap" {
				return usageError("--as is %q; write vap, for ValidatingAdmissionPolicies", as)
			}
			var err error
			if o.StateMachines, err = loadFolder(machines, statemachines.LoadFS); err != nil {
				return err
			}
			if o.AdmissionRules, err = loadFolder(rules, webhook.LoadFS); err != nil {
				return err
			}
			return renderAdmission(c.OutOrStdout(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&as, "as", "", "the form: vap")
	flags.StringArrayVar(&o.SchedulerNames, "scheduler-name", []string{"celsius", "volcano"},
		"look at jobs and pods of this spec.schedulerName; repeatable, and replaces the default")
	flags.StringToInt64Var(&o.Limits, "limit", nil, "how much one Job may ask for, as NAME=VALUE; repeatable")
	machines.register(flags, "state-machines", "folder of state machines, which say what policies and Commands may name")
	rules.register(flags, "admission-rules", "folder of rules of admission (YAML) of this cluster's own, written after those that ship")
	return cmd
}

// renderAdmission writes the rows that the API server can check, preceded by a list of the rows that it cannot check.
func renderAdmission(out io.Writer, o webhook.Options) error {
	written, err := webhook.VAPs(o)
	if err != nil {
		return err //nolint:wrapcheck // it says what is wrong
	}
	say(out, "# Rows of admission that the API server asks itself. Written by celsius admission render --as vap.\n#\n"+
		"# Nothing is filled in, so Jobs say what they leave to the webhook elsewhere: names of tasks, and a queue that is not default.\n"+
		"# Not written, as only the webhook can ask it:\n")
	var objects strings.Builder
	for _, v := range written {
		for _, l := range v.LeftOut {
			say(out, "#   %s %s: %s %s\n", v.Kind, v.Name, l.Row, l.Why)
		}
		if v.Policy == nil {
			continue
		}
		for _, object := range []any{v.Policy, v.Binding} {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				return fmt.Errorf("write %s: %w", v.Policy.Name, err)
			}
			delete(fields, "status")
			text, err := yaml.Marshal(fields)
			if err != nil {
				return fmt.Errorf("write %s: %w", v.Policy.Name, err)
			}
			objects.WriteString("---\n" + string(text))
		}
	}
	say(out, "%s", objects.String())
	return nil
}
