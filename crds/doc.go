// Package crds is the API: Go types by group and version, and the manifests that are
// generated from them.
//
//	batch/v1alpha1       Job, CronJob       batch.volcano.sh
//	bus/v1alpha1         Command            bus.volcano.sh
//	flow/v1alpha1        JobFlow, JobTemplate  flow.volcano.sh
//	nodeinfo/v1alpha1    Numatopology       nodeinfo.volcano.sh
//	scheduling/v1beta1   PodGroup, Queue    scheduling.volcano.sh
//	policy/v1alpha1      SchedulingPolicy   scheduling.celsius.dev
//
//	Go types --controller-gen--> manifests --generate--> manifests/*.yaml, embedded here
//
// Fields, defaults, enums, short names and columns of all but the last are Volcano's, those
// of its newest version included, so that no manifest of a user loses a field. Only what
// Volcano would refuse as well is refused by the schema.
package crds
