package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestReadLater tries to avoid the rules of samples/admission. It uses every alias of a field that they read, and every change of that
// field after admission. docs/security.md lists the entries by name.
func TestReadLater(t *testing.T) {
	const (
		controllers       = "system:serviceaccount:celsius-system:celsius-controllers"
		scheduler         = "system:serviceaccount:celsius-system:celsius-scheduler"
		replicaSets       = "system:serviceaccount:kube-system:replicaset-controller"
		queue             = "scheduling.volcano.sh/queue-name"
		group, groupAlias = "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"
	)
	annotated := func(pairs ...string) string {
		var parts []string
		for i := 0; i < len(pairs); i += 2 {
			parts = append(parts, pairs[i]+": "+pairs[i+1])
		}
		return "{annotations: {" + strings.Join(parts, ", ") + "}}"
	}
	pod := func(metadata string) string { return "metadata: " + metadata }
	tasks := func(template string) string {
		return "spec: {minAvailable: 1, tasks: [{name: w, replicas: 9, template: " + template + "}]}"
	}
	account := func(fields string) string {
		return tasks("{spec: {" + fields + ", containers: [{name: a, image: pytorch:2.9}]}}")
	}
	const gpus = "resources: {limits: {nvidia.com/gpu: 8}}"
	research := func(spec string) string {
		return "spec: {minAvailable: 1, queue: research, tasks: [{name: w, replicas: 9, template: {spec: " + spec + "}}]}"
	}
	owned := func(uid string) string {
		return "{ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: " + uid + ", controller: true}]}"
	}
	tables, err := Options{AdmissionRules: samples(t)}.tables()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind, who, object string
		old, want         string // old: the object before an update; want: a part of the refusal, "" for none
		namespace         string // the queue in the annotations of the namespace
	}{
		"queue of a job": {
			kind: "Job", who: "joe",
			object: "spec: {queue: child}",
			want:   "spec.queue: user joe may not use queue child",
		},
		"queue of a job, its own":         {kind: "Job", who: "jane", object: "spec: {queue: child}"},
		"queue of a job, the namespace's": {kind: "Job", who: "joe", object: "spec: {queue: child}", namespace: "child"},
		"queue of a job, made by Celsius": {kind: "Job", who: controllers, object: "spec: {queue: child}"},
		"queue of a job, changed": {
			kind: "Job", who: "joe",
			old:    "spec: {queue: default}",
			object: "spec: {queue: child}",
			want:   "spec.queue",
		},
		"queue of a template's pods": {
			kind: "Job", who: "joe",
			object: tasks("{metadata: " + annotated(queue, "child") + ", spec: {containers: [{name: a, image: x}]}}"),
			want:   "spec.tasks[0].template.metadata.annotations",
		},
		"queue of a group": {kind: "PodGroup", who: "joe", object: "spec: {queue: child}", want: "spec.queue"},
		"queue of a group, changed": {
			kind: "PodGroup", who: "joe",
			old:    "spec: {queue: default}",
			object: "spec: {queue: child}",
			want:   "spec.queue",
		},
		"queue of a group, by scheduler": {kind: "PodGroup", who: scheduler, object: "spec: {queue: child}"},
		"queue of a group, with an owner": {
			kind: "PodGroup", who: "joe",
			object: "metadata: " + owned("u1") + "\nspec: {queue: child}",
			want:   "spec.queue",
		},
		"queue of a pod": {
			kind: "Pod", who: "joe",
			object: pod(annotated(queue, "child")),
			want:   "user joe may not use queue child",
		},
		"queue of a pod that has a group": {
			kind: "Pod", who: "joe",
			object: pod(annotated(queue, "child", group, "pair")),
			want:   "user joe may not use queue child",
		},
		"queue of a pod, other spelling": {
			kind: "Pod", who: "joe",
			object: pod(annotated(queue, "child", groupAlias, "pair")),
			want:   "user joe may not use queue child",
		},
		"queue of a pod, changed": {
			kind: "Pod", who: "jane",
			old:    pod(annotated(queue, "default")),
			object: pod(annotated(queue, "child")),
			want:   "may not change",
		},
		"queue of a pod, added": {
			kind: "Pod", who: "jane",
			old:    pod("{}"),
			object: pod(annotated(queue, "child")),
			want:   "may not change",
		},
		"queue of a pod, removed": {
			kind: "Pod", who: "joe",
			old:    pod(annotated(queue, "default")),
			object: pod("{labels: {a: b}}"),
			want:   "may not change",
		},
		"queue of an owner": {kind: "Pod", who: replicaSets, object: pod(owned("u1")), want: "is missing"},
		"owner of a pod, changed": {
			kind: "Pod", who: "joe",
			old:    pod("{}"),
			object: pod(owned("u1")),
			want:   "metadata.ownerReferences",
		},
		"owner of a pod, adopted": {
			kind: "Pod", who: replicaSets,
			old:    pod(annotated(queue, "default")),
			object: pod("{annotations: {" + queue + ": default}, " + owned("u1")[1:]),
		},
		"group of a pod, removed": {
			kind: "Pod", who: "joe",
			old:    pod(annotated(group, "pair")),
			object: pod("{}"),
			want:   "may not change after the pod has a PodGroup",
		},
		"group of a pod, changed": {
			kind: "Pod", who: "joe",
			old:    pod(annotated(group, "pair")),
			object: pod(annotated(group, "other")),
			want:   "this is pair",
		},
		"group of a pod, respelt": {
			kind: "Pod", who: "joe",
			old:    pod(annotated(groupAlias, "pair")),
			object: pod(annotated(group, "pair", groupAlias, "pair")),
		},
		"group of a pod, by other key": {
			kind: "Pod", who: "joe",
			old:    pod(annotated(groupAlias, "pair")),
			object: pod(annotated(group, "other", groupAlias, "pair")),
			want:   "this is pair",
		},
		"group of a pod, given by Celsius": {
			kind: "Pod", who: controllers,
			old:    pod(annotated(queue, "default")),
			object: pod(annotated(queue, "default", group, "podgroup-1")),
		},
		"pod of a job, by Celsius": {kind: "Pod", who: controllers, object: pod(annotated(group, "job-1"))},
		"account": {
			kind: "Job", who: "joe",
			object: account("serviceAccountName: uploader"),
			want:   "template.spec.serviceAccountName: user joe may not run pods as uploader",
		},
		"account, its alias": {
			kind: "Job", who: "joe",
			object: account("serviceAccount: uploader"),
			want:   "template.spec.serviceAccount: user joe may not run pods as uploader",
		},
		"account, both": {
			kind: "Job", who: "joe",
			object: account("serviceAccountName: default, serviceAccount: uploader"),
			want:   "template.spec.serviceAccount",
		},
		"account, its user": {kind: "Job", who: "jane", object: account("serviceAccount: uploader")},
		"account, changed": {
			kind: "Job", who: "jane",
			old:    account("serviceAccountName: default"),
			object: account("serviceAccountName: uploader"),
			want:   "may not change",
		},
		"GPUs": {
			kind: "Job", who: "jane",
			object: research("{containers: [{name: a, image: x, " + gpus + "}]}"),
			want:   "72 GPUs",
		},
		"GPUs of init containers": {
			kind: "Job", who: "jane",
			object: research("{initContainers: [{name: i, image: x, " + gpus + "}], containers: [{name: a, image: x}]}"),
			want:   "72 GPUs",
		},
		"GPUs of sidecars": {
			kind: "Job", who: "jane",
			object: research("{initContainers: [{name: i, image: x, restartPolicy: Always, " + gpus +
				"}], containers: [{name: a, image: x, " + gpus + "}]}"),
			want: "144 GPUs",
		},
		"GPUs, the larger counts": {
			kind: "Job", who: "jane",
			object: strings.Replace(research("{initContainers: [{name: i, image: x, "+gpus+"}], containers: [{name: a, image: x, "+
				""+gpus+"}]}"), "replicas: 9", "replicas: 8", 1),
		},
		"GPUs, scaled": {
			kind: "Job", who: "jane", want: "72 GPUs",
			old:    strings.Replace(research("{containers: [{name: a, image: x, "+gpus+"}]}"), "replicas: 9", "replicas: 1", 1),
			object: research("{containers: [{name: a, image: x, " + gpus + "}]}"),
		},
		"priority of a job": {
			kind: "Job", who: "jane",
			object: "metadata: {namespace: prod}",
			want:   "spec.priorityClassName: is missing",
		},
		"priority of a job, removed": {
			kind: "Job", who: "jane",
			old:    "metadata: {namespace: prod}\nspec: {priorityClassName: high}",
			object: "metadata: {namespace: prod}",
			want:   "spec.priorityClassName: is missing",
		},
		"scheduler of a job, changed": {
			kind: "Job", who: "joe",
			old:    "spec: {schedulerName: other, queue: child}",
			object: "spec: {schedulerName: celsius, queue: child}",
			want:   "spec.schedulerName: may not change",
		},
		"scheduler of a template": {
			kind: "JobTemplate", who: "joe",
			object: "spec: {schedulerName: other, queue: child}",
			want:   "spec.queue: user joe may not use queue child",
		},
		"template of a CronJob": {
			kind: "CronJob", who: "joe",
			object: "spec: {jobTemplate: {spec: {queue: child}}}",
			want:   "spec.jobTemplate.spec.queue",
		},
		"template of a CronJob, changed": {
			kind: "CronJob", who: "joe", old: "spec: {jobTemplate: {spec: {queue: default}}}", object: "spec: {jobTemplate: {spec: {queue: child}}}",
			want: "spec.jobTemplate.spec.queue",
		},
		"target of a Command, changed": {
			kind: "Command", who: "joe", want: "you may not patch it",
			old:    "target: {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: default, uid: u1}\naction: CloseQueue",
			object: "target: {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: child, uid: u1}\naction: CloseQueue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := tables[slices.IndexFunc(tables, func(t *Table) bool { return t.Kind == c.kind })]
			plain := plainOf(t, c.kind)
			r := jobIn(t, "{}")
			in := cluster{authorizer: rights{
				"jane use queues.scheduling.volcano.sh//child", "jane use queues.scheduling.volcano.sh//research",
				"jane use serviceaccounts./default/uploader",
			}}
			r.Object, r.User = mergedOver(t, plain, c.object), in.userOf(t.Context(), authenticationv1.UserInfo{Username: c.who})
			r.Related = func() (*Related, error) { return &Related{Name: "x"}, nil }
			r.CommandActions = map[string][]string{"Queue": {"CloseQueue", "OpenQueue"}, "Job": {"AbortJob"}}
			r.NamespaceAnnotations = func() (map[string]string, error) {
				if c.namespace == "" {
					return nil, nil
				}
				return map[string]string{schedulingv1beta1.QueueNameAnnotationKey: c.namespace}, nil
			}
			known := r.Queues
			r.Queues = func() ([]map[string]any, error) {
				all, err := known()
				return append(slices.Clone(all), map[string]any{"metadata": map[string]any{"name": "research"}}), err
			}
			if c.old != "" {
				r.Operation, r.OldObject = opUpdate, mergedOver(t, plain, c.old)
			}
			mistakes, _, err := table.Check(r)
			said := fmt.Sprint(mistakes)
			if err != nil || len(mistakes) > 0 != (c.want != "") || !strings.Contains(said, c.want) {
				t.Errorf("%v %s\nwant: %q", err, said, c.want)
			}
		})
	}
}

// plainOf returns an object of a kind that no row refuses.
func plainOf(t *testing.T, kind string) string {
	t.Helper()
	for _, s := range suites() {
		if mergedOver(t, s.plain, "{}")["kind"] == kind {
			return s.plain
		}
	}
	t.Fatalf("no suite of %ss", kind)
	return ""
}

// TestQueueIsWritten checks that admission writes the queue into a pod. So the pod keeps this queue, even if its owner later names another
// one.
func TestQueueIsWritten(t *testing.T) {
	tables, err := Options{AdmissionRules: samples(t)}.tables()
	if err != nil {
		t.Fatal(err)
	}
	table := tables[slices.IndexFunc(tables, func(t *Table) bool { return t.Kind == podKind })]
	for _, c := range []struct{ who, metadata, namespace, want string }{
		{"joe", "{}", "", "default"},
		{"joe", "{}", "child", "child"},
		{"joe", "{annotations: {scheduling.volcano.sh/queue-name: child}}", "", "child"},
		{"joe", "{annotations: {scheduling.k8s.io/group-name: pair}}", "", ""},
		{"system:serviceaccount:celsius-system:celsius-controllers", "{}", "", ""},
	} {
		r := jobIn(t, "{}")
		r.Object, r.User = mergedOver(t, plainPod, "metadata: "+c.metadata), cluster{authorizer: rights{}}.userOf(
			t.Context(), authenticationv1.UserInfo{Username: c.who})
		r.NamespaceAnnotations = func() (map[string]string, error) {
			return map[string]string{schedulingv1beta1.QueueNameAnnotationKey: c.namespace}, nil
		}
		object, mistakes, err := table.Default(r)
		if err != nil || len(mistakes) > 0 {
			t.Fatal(mistakes, err)
		}
		annotations, _ := fieldsOf(object, "metadata")["annotations"].(map[string]any)
		if got, _ := annotations[schedulingv1beta1.QueueNameAnnotationKey].(string); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestPodsAreAskedAboutByAnyPath checks that the API server calls the webhook for each change of a pod that own rows read. A write of
// pods/status can also change annotations.
func TestPodsAreAskedAboutByAnyPath(t *testing.T) {
	endpoints, err := newEndpoints(Options{AdmissionRules: samples(t)}.withDefaults(), cluster{authorizer: rights{}}, newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	e := endpoints[slices.IndexFunc(endpoints, func(e *endpoint) bool { return e.path == "/pods/validate" })]
	want := []string{"pods", "pods/status", "pods/resize", "pods/ephemeralcontainers"}
	if got := e.rule().Resources; !slices.Equal(got, want) {
		t.Errorf("asked about %v", got)
	}
	if said := e.conditions[len(e.conditions)-1].expression; !strings.Contains(said, "ownerReferences") {
		t.Errorf("asked where %s", said)
	}
}
