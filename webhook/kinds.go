package webhook

import (
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/celsius-scheduler/celsius/crds"
	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/admission"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// The kinds that code refers to by name.
const (
	jobKind     = "Job"
	jobFlowKind = "JobFlow"
	podKind     = "Pod"
	queueKind   = "Queue"
)

// kindOf describes a kind.
type kindOf struct {
	manifest string
	group    schema.GroupVersion
	resource string
	// subresources are the subresources through which a client can change fields that rows read. For example, an update of a pod's status can
	// change annotations.
	subresources []string
	goType       reflect.Type
	// deletions is true if deletions are checked, too.
	deletions bool
	// read derives the schema of the kind from the schema in the manifest. nil means that they are the same.
	read func(*apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, error)
}

// kinds returns the kinds that a table can apply to.
func kinds() map[string]kindOf {
	return map[string]kindOf{
		jobKind: {
			manifest: "batch.volcano.sh_jobs.yaml", group: batchv1alpha1.GroupVersion, resource: "jobs",
			goType: reflect.TypeFor[batchv1alpha1.Job](),
		},
		"CronJob": {
			manifest: "batch.volcano.sh_cronjobs.yaml", group: batchv1alpha1.GroupVersion, resource: "cronjobs",
			goType: reflect.TypeFor[batchv1alpha1.CronJob](),
		},
		jobFlowKind: {
			manifest: "flow.volcano.sh_jobflows.yaml", group: flowv1alpha1.GroupVersion, resource: "jobflows",
			goType: reflect.TypeFor[flowv1alpha1.JobFlow](),
		},
		"JobTemplate": {
			manifest: "flow.volcano.sh_jobtemplates.yaml", group: flowv1alpha1.GroupVersion, resource: "jobtemplates",
			goType: reflect.TypeFor[flowv1alpha1.JobTemplate](),
		},
		queueKind: {
			manifest: "scheduling.volcano.sh_queues.yaml", group: schedulingv1beta1.GroupVersion, resource: "queues",
			goType: reflect.TypeFor[schedulingv1beta1.Queue](), deletions: true,
		},
		"PodGroup": {
			manifest: "scheduling.volcano.sh_podgroups.yaml", group: schedulingv1beta1.GroupVersion, resource: "podgroups",
			goType: reflect.TypeFor[schedulingv1beta1.PodGroup](),
		},
		"Command": {
			manifest: "bus.volcano.sh_commands.yaml", group: busv1alpha1.GroupVersion, resource: "commands",
			goType: reflect.TypeFor[busv1alpha1.Command](),
		},
		podKind: {
			manifest: "batch.volcano.sh_jobs.yaml", group: corev1.SchemeGroupVersion, resource: "pods", goType: reflect.TypeFor[corev1.Pod](),
			read: podOfTask, subresources: []string{"pods/status", "pods/resize", "pods/ephemeralcontainers"},
		},
	}
}

// podOfTask returns the schema of a pod, which is that of the template of a Job's task.
func podOfTask(job *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, error) {
	tasks := job.Properties["spec"].Properties["tasks"]
	if tasks.Items == nil || tasks.Items.Schema == nil {
		return nil, errors.New("tasks of a Job are no list")
	}
	template := tasks.Items.Schema.Properties["template"]
	return &template, nil
}

// schema reads the schema of a kind from a CustomResourceDefinition.
func (k kindOf) schema(kind string) (*typed.Schema, error) {
	data, err := crds.Manifests.ReadFile("manifests/" + k.manifest)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	if k.read == nil {
		return typed.FromCRD(data, kind)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, crd); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	part, err := k.read(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	return typed.FromSchema(part, kind), nil
}

// JobTable compiles the built-in table of Jobs.
func JobTable() (*Table, source.Issues) { return shipped("job.yaml") }

// PodGroupTable compiles the built-in table of PodGroups.
func PodGroupTable() (*Table, source.Issues) { return shipped("podgroup.yaml") }

// QueueTable compiles the built-in table of Queues.
func QueueTable() (*Table, source.Issues) { return shipped("queue.yaml") }

// PodTable compiles the built-in table of Pods.
func PodTable() (*Table, source.Issues) { return shipped("pod.yaml") }

// CommandTable compiles the built-in table of Commands.
func CommandTable() (*Table, source.Issues) { return shipped("command.yaml") }

// CronJobTable compiles the built-in table of CronJobs. Its includes check nothing until the table is linked.
func CronJobTable() (*Table, source.Issues) { return shipped("cronjob.yaml") }

// JobFlowTable compiles the built-in table of JobFlows. Its includes check nothing until the table is linked.
func JobFlowTable() (*Table, source.Issues) { return shipped("jobflow.yaml") }

// JobTemplateTable compiles the built-in table of JobTemplates. Its includes check nothing until the table is linked.
func JobTemplateTable() (*Table, source.Issues) { return shipped("jobtemplate.yaml") }

func shipped(file string) (*Table, source.Issues) {
	data, err := admission.FS.ReadFile(file)
	if err != nil {
		return nil, source.Issues{{File: file, Message: err.Error()}}
	}
	docs, issues := source.Parse("rules/admission/"+file, data)
	if issues.Err() != nil || len(docs) != 1 {
		return nil, append(issues, source.Issue{File: file, Message: "one document is wanted"})
	}
	return Load(docs[0])
}
