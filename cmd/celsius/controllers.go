package main

import (
	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

func newControllersCommand() *cobra.Command {
	var client clientFlags
	var o controller.Options
	var machines folderFlag
	var plugins jobPluginsFlag
	c := &cobra.Command{
		Use:   "controllers",
		Short: "Run the controllers of Jobs, CronJobs, JobFlows and Queues",
		Long: `Run the controllers: they make the PodGroup and the pods of a Job, follow its
life by the state machine, make the Jobs of CronJobs and JobFlows, keep the
states and counts of Queues, take Commands, and give a PodGroup to pods that
have none.

Only jobs and pods of the given scheduler names are touched.`,
		Example: `  celsius controllers --kubeconfig ~/.kube/config
  celsius controllers --scheduler-name volcano --leader-elect
  celsius controllers --state-machines ./machines`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.StateMachines, err = loadFolder(machines, statemachines.LoadFS); err != nil {
				return err
			}
			if o.JobPlugins, err = plugins.load(); err != nil {
				return err
			}
			cfg, err := client.connect("controllers")
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			return controller.Run(ctx, cfg, o)
		},
	}
	flags := c.Flags()
	client.register(flags)
	flags.StringSliceVar(&o.SchedulerNames, "scheduler-name", []string{"celsius", "volcano"},
		"a scheduler whose jobs and pods are managed; repeatable; a job that names no scheduler gets the first")
	flags.IntVar(&o.Workers, "workers", controller.DefaultWorkers, "how many objects of each kind are worked on at the same time")
	flags.IntVar(&o.MaxRequeue, "max-requeue-num", controller.DefaultMaxRequeue,
		"how often in a row the API server may refuse an object of a job before the job is terminated; -1: without limit")
	flags.IntVar(&o.MaxPods, "max-pods-per-job", controller.DefaultMaxPods,
		"how many pods one job may have: if a job requests more, none is created, and its status states why; -1: no limit; the "+
			"same as the limit pods of admission")
	flags.IntVar(&o.MaxJobs, "max-jobs-per-flow", controller.DefaultMaxJobs,
		"how many Jobs one JobFlow may list: if it lists more, none is created, and its status states why; -1: no limit; the same as the "+
			"limit flows of admission")
	machines.register(flags, "state-machines", "folder of state machines (YAML) that replace those of the same name that are built in")
	plugins.register(flags, "; celsius webhook needs the same")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "wait for the lease, so that only one of several instances is active")
	flags.StringVar(&o.LeaseName, "lease-name", controller.DefaultLeaseName, "the lease that the leader holds")
	flags.StringVar(&o.SchedulerLeaseName, "scheduler-lease-name", controller.DefaultSchedulerLeaseName,
		"the lease of the scheduler: where nothing holds it, Jobs and pods that wait say so")
	leaseFlags(flags, &o.LeaseTimes)
	flags.StringVar(&o.Namespace, "namespace", controller.DefaultNamespace, "the namespace of the lease")
	servedFlags(flags, &o.Served)
	return c
}
