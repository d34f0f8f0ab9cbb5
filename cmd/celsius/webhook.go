package main

import (
	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/webhook"
)

func newWebhookCommand() *cobra.Command {
	var clients clientFlags
	var o webhook.Options
	var machines, rules folderFlag
	var plugins jobPluginsFlag
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Fill in and check Jobs, Queues, policies before they are stored",
		Long: `Fill in what Jobs, PodGroups and Queues leave open, and refuse those, and
CronJobs, JobFlows, JobTemplates, SchedulingPolicies, Commands and Pods that
cannot work, before they are stored. --admission-rules adds rules of this
cluster's own, and says which pods go to which nodes.

It serves, then tells the API server to ask it: it writes a
MutatingWebhookConfiguration and a ValidatingWebhookConfiguration. While they
exist and no webhook runs, Jobs are rejected. In a cluster they are installed
with it, and it may only patch them. Certificates are created, renewed and kept
in the Secret celsius-webhook-certs, unless --cert-dir provides some; the key
that signs them is not kept. Any number of replicas may serve at once.`,
		Example: `  # in a cluster, behind the Service celsius-webhook
  celsius webhook

  # on this machine, for an API server on this machine
  celsius webhook --url-host 127.0.0.1 --unregister-on-exit`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.JobPlugins, err = plugins.load(); err != nil {
				return err
			}
			if o.StateMachines, err = loadFolder(machines, statemachines.LoadFS); err != nil {
				return err
			}
			if o.AdmissionRules, err = loadFolder(rules, webhook.LoadFS); err != nil {
				return err
			}
			cfg, err := clients.connect("webhook")
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			return webhook.Run(ctx, cfg, o)
		},
	}
	flags := cmd.Flags()
	clients.register(flags)
	flags.StringArrayVar(&o.SchedulerNames, "scheduler-name", []string{"celsius", "volcano"},
		"look at jobs of this spec.schedulerName; repeatable, and replaces the default; the first is written where a job names none")
	flags.StringVar(&o.Namespace, "namespace", "celsius-system",
		"where the Service and the Secret of the certificates are; nothing in it is looked at")
	flags.StringVar(&o.ServiceName, "service-name", "celsius-webhook", "the Service by which the API server reaches this")
	machines.register(flags, "state-machines",
		"folder of state machines, as the controllers have it; the machine of jobs says which events and actions policies may name")
	plugins.register(flags, ", as the controllers have it")
	rules.register(flags, "admission-rules", "folder of rules of admission (YAML) of this cluster's own, and of resource groups, "+
		"asked after those that are built in")
	flags.StringToInt64Var(&o.Limits, "limit", nil,
		"how much one Job or JobFlow may ask for, or how deep queues may stand below each other, as NAME=VALUE; repeatable; of "+
			"dependencies, depth, events, flows, pods, policies, probes, targets, tasks, volumes")
	flags.StringVar(&o.Address, "address", ":8443", "where to listen; port 0 takes a free one")
	flags.StringVar(&o.URLHost, "url-host", "",
		"host, or host:port, by which the API server reaches this in place of the Service; without a port, that of --address")
	flags.StringVar(&o.CertDir, "cert-dir", "",
		"folder with tls.crt, tls.key and ca.crt, in place of certificates made here; read again when they change")
	flags.StringVar(&o.ClientCAFile, "client-ca-file", "",
		"file of authorities (PEM) that sign the client certificate of the API server; clients without one are refused (default: not verified)")
	flags.StringVar(&o.ConfigurationName, "configuration-name", "celsius", "name of the two webhook configurations")
	flags.BoolVar(&o.UnregisterOnExit, "unregister-on-exit", false,
		"remove the webhook configurations at exit; Jobs are then admitted unchecked while no webhook runs")
	servedFlags(flags, &o.Served)
	return cmd
}
