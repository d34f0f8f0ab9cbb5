package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volcano"
)

const shadowHelp = `Watch the decisions of another scheduler in a cluster, by default Volcano, and
report where a policy would have decided differently. Nothing is written to the
cluster: only get, list and watch requests are sent, with your credentials.

Each cycle takes in what changed, decides by the policy on the cluster as the
other made it, and undoes that. What the other does is compared when it is seen:

  Alike      the policy decided the same within the last --grace
  Elsewhere  both bind the pod, to other nodes: with the scores of both, or the
             row that refuses the other's
  Alone      the other admitted, bound or evicted what the policy would not have
  Later      the policy would have done so more than --grace earlier
  NotYet     the policy would have done so for more than --grace; the other has
             not, with what it says of that

Differences are told on standard error as they are found, the report on standard
output after --cycles, or when it is interrupted. A cycle begins when something
came that can matter, or after --period.

Without --policy and --conf the configuration decides with which Volcano ships.
A row that asks a server has no answer here.`

// shadow contains the flags of the command.
type shadow struct {
	beside.Options
	policy, conf, output string
	verbosity            int
}

func newShadowCommand() *cobra.Command {
	var s shadow
	flags := cluster.Flags()
	flags.Namespace = nil
	c := &cobra.Command{
		Use:   "shadow [--of volcano] [--policy FILE | --conf FILE]",
		Short: "Tell where a policy would differ from another scheduler",
		Long:  shadowHelp,
		Example: `  kubectl get configmap -n volcano-system volcano-scheduler-configmap -o yaml |
    celsius shadow --conf -
  celsius shadow --policy mine.yaml --cycles 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.check(c); err != nil {
				return err
			}
			log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(s.verbosity), textlogger.Output(c.ErrOrStderr())))
			ctrl.SetLogger(log)
			klog.SetLogger(log)
			cfg, err := flags.ToRESTConfig()
			if err != nil {
				return fmt.Errorf("find the API server: %w; give --kubeconfig or --context, or set KUBECONFIG", err)
			}
			cfg.UserAgent = "celsius-shadow/" + version()
			s.follow(c.ErrOrStderr())
			ctx, stop := untilSignal(c.Context())
			defer stop()
			report, err := live.Beside(ctx, cfg, s.Options)
			switch {
			case report != nil:
				return errors.Join(s.tell(c.OutOrStdout(), report), err)
			case err == nil:
				return errors.New("it was interrupted before there was a cycle")
			}
			return err
		},
	}
	flags.AddFlags(c.Flags())
	f := c.Flags()
	f.StringVar(&s.Of, "of", "volcano", "watch the scheduler that places pods with this spec.schedulerName")
	f.StringVar(&s.policy, "policy", "", "decide by the SchedulingPolicy in this file; - is standard input")
	f.StringVar(&s.conf, "conf", "", "decide as this configuration of Volcano's scheduler does, or the ConfigMap that holds it, "+
		"converted as by celsius policy convert; - is standard input")
	f.IntVar(&s.Cycles, "cycles", 1000, "after how many cycles it reports and ends; 0: when it is interrupted")
	f.DurationVar(&s.Period, "period", time.Second, "longest time between two cycles")
	f.DurationVar(&s.Grace, "grace", 3*time.Second, "how long the other may take to do what is decided here at once, its own period and its "+
		"writes; and how old the state may be on which it decided what it does now")
	f.StringVar(&s.NodeSelector, "node-selector", "", "see only the nodes with these labels, as the other does: a selector as of kubectl")
	f.StringVarP(&s.output, "output", "o", "text", "text, or json")
	f.IntVarP(&s.verbosity, "v", "v", 0, "how much is logged")
	return c
}

// check rejects invalid combinations of flags, and finds the policy.
func (s *shadow) check(c *cobra.Command) (err error) {
	switch {
	case s.policy != "" && s.conf != "":
		return usageError("give --policy or --conf, not both")
	case s.Of == "":
		return usageError("--of is empty: give the spec.schedulerName of the pods that the other places")
	case s.Cycles < 0:
		return usageError("--cycles %d is below 0; 0 is until it is interrupted", s.Cycles)
	case s.Period <= 0 || s.Grace <= 0:
		return usageError("--period and --grace must be above 0")
	case s.output != "text" && s.output != "json":
		return usageError("--output must be text or json, found %q", s.output)
	case s.conf != "":
		_, s.Policy, err = convertedPolicy(c, s.conf, volcano.Options{Name: "volcano"})
		return err
	}
	file := s.policy
	if file == "" {
		file = "default"
	}
	doc, err := onePolicy(file, c.InOrStdin())
	if err != nil {
		return err
	}
	p, issues := policy.Load(doc)
	if err := issues.Err(); err != nil {
		return exitError{exitMistakes, issues}
	}
	s.Policy = p
	return nil
}

// lineEvery is the minimum time between two status lines on a terminal.
const lineEvery = 10 * time.Second

// follow prints differences when they are found.
func (s *shadow) follow(errs io.Writer) {
	s.Tell = func(d *beside.Difference) {
		say(errs, "%s %s %s\n", d.At.Format(time.TimeOnly), d.Kind, d)
	}
	if !onTerminal(errs) {
		return
	}
	last := time.Now()
	s.Cycled = func(x *beside.Shadow) {
		if now := time.Now(); now.Sub(last) >= lineEvery {
			last = now
			say(errs, "%s %s\n", now.Format(time.TimeOnly), x.Line())
		}
	}
}

// onTerminal reports whether messages go to a terminal.
func onTerminal(errs io.Writer) bool {
	if m, ok := errs.(*messages); ok {
		errs = m.to
	}
	f, ok := errs.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // descriptors are small
}

func (s *shadow) tell(out io.Writer, r *beside.Report) error {
	if s.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r) //nolint:wrapcheck // there is nothing to say of a pipe that was closed
	}
	say(out, "%s", r.Text())
	return nil
}
