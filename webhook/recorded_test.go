package webhook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// recorded is one case of an admission table that was recorded from Volcano.
type recorded struct {
	ID          string
	Job, OldJob json.RawMessage
	// For Queues and PodGroups: an operation and its objects. For a function that was called directly: its name and the queue.
	Operation, Fn                    string
	Object, OldObject, Queue, Parent json.RawMessage
	Children                         []schedulingv1beta1.Queue
	// For PodGroups whose patch was recorded: the PodGroup and its namespace object. In other tables, the namespace is a name.
	PodGroup, Namespace json.RawMessage
	// For CronJobs: a CronJob or its spec. For JobFlows: a JobFlow. For Pods: a pod and the configuration of resource groups.
	CronJob, CronJobSpec, JobFlow, Pod json.RawMessage
	ResGroupsConfig                    []map[string]any
	Patch                              json.RawMessage
	Allowed                            bool
	Message                            string
	FullPatch                          json.RawMessage
	ExistingQueues                     []schedulingv1beta1.Queue
}

// readRecorded returns the cases of one table. It skips the test if the recordings are not there.
func readRecorded(t *testing.T, table string) []recorded {
	t.Helper()
	folder := corpus.Dir(t, "conformance")
	data, err := os.ReadFile(filepath.Join(folder, "tables", table+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []recorded
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		t.Fatalf("%s: no cases", table)
	}
	return out
}

// deliberate returns the cases that differ on purpose, with the reason.
func deliberate(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/deliberate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Differences []struct{ ID, Reason string } }
	if err := yaml.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range list.Differences {
		out[d.ID] = d.Reason
	}
	return out
}

// replay compares each case. It fails for a difference that the list of deliberate differences does not contain, and for an entry of the
// list that does not differ.
func replay(t *testing.T, table string, differs func(recorded) string) {
	t.Helper()
	cases, meant := readRecorded(t, table), deliberate(t)
	passed, different := 0, 0
	for _, r := range cases {
		diff := differs(r)
		switch reason := meant[r.ID]; {
		case diff == "" && reason == "":
			passed++
		case diff == "":
			t.Errorf("%s is listed in testdata/deliberate.yaml and does not differ", r.ID)
		case reason == "":
			t.Errorf("%s: %s", r.ID, diff)
		default:
			different++
		}
	}
	t.Logf("%s: %d passed, %d differ on purpose, of %d", table, passed, different, len(cases))
	if different*100 > 3*len(cases) {
		t.Errorf("%s: %d of %d cases differ, at most 3 in 100 may", table, different, len(cases))
	}
}

func handlerFor(t testing.TB, queues ...schedulingv1beta1.Queue) *tableHandler {
	t.Helper()
	machine, issues := statemachines.Default(jobMachine)
	if machine == nil {
		t.Fatal(issues.Error())
	}
	return &tableHandler{
		table: jobTable(t), machine: machine, plugins: jobPlugins(t), metrics: newMetrics(),
		cluster: cluster{
			schedulerNames: []string{"volcano"}, queues: func(context.Context) ([]schedulingv1beta1.Queue, error) { return queues, nil },
		},
	}
}

func requestFor(operation admissionv1.Operation, object, old []byte) admission.Request {
	r := admission.Request{}
	r.Operation = operation
	r.Kind = metav1.GroupVersionKind{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}
	r.Object, r.OldObject = runtime.RawExtension{Raw: object}, runtime.RawExtension{Raw: old}
	return r
}

// refused returns the fields that our refusal must name, by the id of the recorded case.
func refused(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/refused.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Fields map[string][]string }
	if err := yaml.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list.Fields
}

func TestRecordedJobCreate(t *testing.T) {
	fields := refused(t)
	replay(t, "admission-job-create", func(r recorded) string {
		h := handlerFor(t, r.ExistingQueues...)
		return differsInVerdict(r, fields[r.ID], h.validate(t.Context(), requestFor(admissionv1.Create, r.Job, nil)))
	})
}

func TestRecordedJobUpdate(t *testing.T) {
	fields := refused(t)
	replay(t, "admission-job-update", func(r recorded) string {
		h := handlerFor(t, r.ExistingQueues...)
		return differsInVerdict(r, fields[r.ID], h.validate(t.Context(), requestFor(admissionv1.Update, r.Job, r.OldJob)))
	})
}

// namedField matches a field that a recorded refusal names. The errors of the API have the same form.
var namedField = regexp.MustCompile(`\b(spec(?:\.\w+(?:\[\d+\])?)+): `)

// differsInVerdict compares the verdict, and the fields of a refusal. It does not compare the words. Each refusal must name a field. If
// testdata/refused.yaml lists the case, the fields must be those in the list. Otherwise, the refusal must name the field that the recorded
// refusal names, if there is one.
func differsInVerdict(r recorded, fields []string, got admission.Response) string {
	if got.Allowed != r.Allowed {
		return fmt.Sprintf("allowed is %t, recorded %t (%s): %s", got.Allowed, r.Allowed, strings.TrimSpace(r.Message), message(got))
	}
	if got.Allowed {
		return ""
	}
	var ours []string
	if got.Result.Details != nil {
		for _, c := range got.Result.Details.Causes {
			ours = append(ours, c.Field)
		}
	}
	switch named := namedField.FindStringSubmatch(r.Message); {
	case len(ours) == 0:
		return fmt.Sprintf("no field is named, recorded %s: %s", strings.TrimSpace(r.Message), message(got))
	case fields != nil:
		if diff := cmp.Diff(fields, ours); diff != "" {
			return fmt.Sprintf("fields (-testdata/refused.yaml +got), recorded %s: %s\n%s", strings.TrimSpace(r.Message), message(got), diff)
		}
	case named != nil:
		path := strings.Replace(named[1], "spec.task[", "spec.tasks[", 1) // Volcano writes task for tasks
		if !slices.ContainsFunc(ours, func(field string) bool { return strings.HasPrefix(field, path) || strings.HasPrefix(path, field) }) {
			return fmt.Sprintf("nothing is said of %s, recorded %s: %s", path, strings.TrimSpace(r.Message), message(got))
		}
	}
	return ""
}

func message(r admission.Response) string {
	if r.Result == nil {
		return ""
	}
	return r.Result.Message
}

func TestRecordedMutate(t *testing.T)        { replay(t, "mutate-job", differsInPatch(t)) }
func TestRecordedMutateDerived(t *testing.T) { replay(t, "mutate-job-derived", differsInPatch(t)) }

func differsInPatch(t *testing.T) func(recorded) string {
	return func(r recorded) string {
		h := handlerFor(t)
		got := h.fillIn(t.Context(), requestFor(admissionv1.Create, r.Job, nil))
		ours, err := json.Marshal(got.Patches)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(patched(t, r.Job, r.FullPatch), patched(t, r.Job, ours)); diff != "" || !got.Allowed {
			return fmt.Sprintf("%s (-recorded +got):\n%s", message(got), diff)
		}
		return ""
	}
}

// patched applies a JSON patch.
func patched(t *testing.T, object, patch []byte) any {
	t.Helper()
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Apply(object)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func queueHandler(t testing.TB, queues ...schedulingv1beta1.Queue) *tableHandler {
	t.Helper()
	table, issues := QueueTable()
	if table == nil {
		t.Fatal(issues.Error())
	}
	return &tableHandler{
		table: table, metrics: newMetrics(),
		cluster: cluster{queues: func(context.Context) ([]schedulingv1beta1.Queue, error) { return queues, nil }},
	}
}

func queueRequest(operation admissionv1.Operation, object, old []byte) admission.Request {
	r := requestFor(operation, object, old)
	r.Kind = metav1.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "Queue"}
	return r
}

func TestRecordedQueue(t *testing.T) {
	fields := refused(t)
	replay(t, "admission-queue", func(r recorded) string {
		object, old := r.Object, r.OldObject
		if r.Operation == opDelete {
			object, old = nil, r.Object
		}
		got := queueHandler(t, r.ExistingQueues...).validate(t.Context(), queueRequest(admissionv1.Operation(r.Operation), object, old))
		if r.Operation != opCreate && r.Operation != opUpdate && r.Operation != opDelete { // the API server sends no such request
			if got.Allowed != r.Allowed {
				return message(got)
			}
			return ""
		}
		return differsInVerdict(r, fields[r.ID], got)
	})
}

// TestRecordedQueueCapability replays two functions of Volcano as requests to create or to update a queue. The first function checks
// whether the capability of a queue fits below its parents. The second one checks a parent: whether the capability, deserved and guarantee
// of its children fit.
func TestRecordedQueueCapability(t *testing.T) {
	replay(t, "admission-queue-capability", func(r recorded) string {
		request, queues := queueRequest(admissionv1.Create, r.Queue, nil), r.ExistingQueues
		about := func(field string) bool { return strings.HasPrefix(field, "spec.capability.") }
		if r.Fn == "childrenConstraints" {
			var parent schedulingv1beta1.Queue
			if err := json.Unmarshal(r.Parent, &parent); err != nil {
				t.Fatal(err)
			}
			queues = slices.DeleteFunc(queues, func(q schedulingv1beta1.Queue) bool { return q.Spec.Parent == parent.Name })
			queues = append(queues, r.Children...)
			request = queueRequest(admissionv1.Update, r.Parent, []byte(`{"metadata": {}}`))
			about = func(string) bool { return true }
		}
		var refused []string
		if got := queueHandler(t, queues...).validate(t.Context(), request); got.Result != nil && got.Result.Details != nil {
			for _, c := range got.Result.Details.Causes {
				if about(c.Field) {
					refused = append(refused, c.Field)
				}
			}
		}
		if len(refused) == 0 != r.Allowed {
			return fmt.Sprintf("refused are %v, recorded %t (%s)", refused, r.Allowed, r.Message)
		}
		return ""
	})
}

func TestRecordedMutateQueue(t *testing.T) {
	replay(t, "mutate-queue", func(r recorded) string {
		got := queueHandler(t).fillIn(t.Context(), queueRequest(admissionv1.Create, r.Object, nil))
		ours, err := json.Marshal(got.Patches)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(patched(t, r.Object, r.Patch), patched(t, r.Object, ours)); diff != "" || !got.Allowed {
			return fmt.Sprintf("%s (-recorded +got):\n%s", message(got), diff)
		}
		return ""
	})
}

// groupHandler returns the handler of PodGroups. The cluster has these queues, and its namespaces have these annotations.
func groupHandler(t testing.TB, annotations map[string]string, queues ...schedulingv1beta1.Queue) *tableHandler {
	t.Helper()
	table, issues := PodGroupTable()
	if table == nil {
		t.Fatal(issues.Error())
	}
	return &tableHandler{
		table: table, metrics: newMetrics(),
		cluster: cluster{
			schedulerNames: []string{"volcano"},
			queues:         func(context.Context) ([]schedulingv1beta1.Queue, error) { return queues, nil },
			annotations:    func(context.Context, string) (map[string]string, error) { return annotations, nil },
		},
	}
}

func groupRequest(operation admissionv1.Operation, object, old []byte) admission.Request {
	r := requestFor(operation, object, old)
	r.Kind = metav1.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
	r.Namespace = "test-ns"
	return r
}

// TestRecordedPodGroup calls the handlers in the order of an API server: defaults first. So an empty queue becomes the default queue, which
// always exists.
func TestRecordedPodGroup(t *testing.T) {
	fields := refused(t)
	replay(t, "admission-podgroup", func(r recorded) string {
		usual := schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: schedulingv1beta1.DefaultQueue}}
		queues := slices.Concat(r.ExistingQueues, []schedulingv1beta1.Queue{usual})
		h := groupHandler(t, map[string]string{}, queues...)
		object, operation := []byte(r.Object), admissionv1.Operation(r.Operation)
		if operation == admissionv1.Create {
			object = filledIn(t, h, object)
		}
		return differsInVerdict(r, fields[r.ID], h.validate(t.Context(), groupRequest(operation, object, r.OldObject)))
	})
}

// filledIn returns a new PodGroup with its defaults.
func filledIn(t *testing.T, h *tableHandler, object []byte) []byte {
	t.Helper()
	got := h.fillIn(t.Context(), groupRequest(admissionv1.Create, object, nil))
	patch, err := json.Marshal(got.Patches)
	if err != nil || !got.Allowed {
		t.Fatal(err, message(got))
	}
	out, err := json.Marshal(patched(t, object, patch))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecordedMutatePodGroup(t *testing.T) {
	replay(t, "mutate-podgroup", func(r recorded) string {
		namespace := metav1.PartialObjectMetadata{}
		if r.Namespace != nil {
			if err := json.Unmarshal(r.Namespace, &namespace); err != nil {
				t.Fatal(err)
			}
		}
		annotations := namespace.Annotations
		if annotations == nil {
			annotations = map[string]string{} // the namespace is known and has no annotations
		}
		var want, got any
		object, patch := []byte(r.PodGroup), []byte(r.Patch)
		if len(patch) == 0 || string(patch) == "null" {
			patch = []byte("[]")
		}
		want = patched(t, object, patch)
		if err := json.Unmarshal(filledIn(t, groupHandler(t, annotations), object), &got); err != nil {
			t.Fatal(err)
		}
		return cmp.Diff(want, got)
	})
}

func TestRecordedCronJob(t *testing.T)     { replay(t, "admission-cronjob", differsForCronJob(t)) }
func TestRecordedCronJobSpec(t *testing.T) { replay(t, "admission-cronjob-spec", differsForCronJob(t)) }

func differsForCronJob(t *testing.T) func(recorded) string {
	table, issues := linkedTo(CronJobTable)()
	if table == nil {
		t.Fatal(issues.Error())
	}
	return func(r recorded) string {
		h := handlerFor(t)
		h.table = table
		object := []byte(r.CronJob)
		if object == nil {
			object = fmt.Appendf(nil, `{"metadata": {"name": "c", "namespace": "default"}, "spec": %s}`, r.CronJobSpec)
		}
		request := requestFor(admissionv1.Create, object, nil)
		request.Kind.Kind = "CronJob"
		return differsInVerdict(r, nil, h.validate(t.Context(), request))
	}
}

func TestRecordedJobFlow(t *testing.T) {
	table, issues := linkedTo(JobFlowTable)()
	if table == nil {
		t.Fatal(issues.Error())
	}
	fields := refused(t)
	replay(t, "admission-jobflow", func(r recorded) string {
		h := handlerFor(t)
		h.table = table
		h.jobTemplates = func(context.Context, string, map[string]any) ([]JobTemplate, error) { return nil, nil }
		request := requestFor(admissionv1.Create, r.JobFlow, nil)
		request.Kind.Kind = jobFlowKind
		return differsInVerdict(r, fields[r.ID], h.validate(t.Context(), request))
	})
}

// TestRecordedMutatePod assigns pods to the resource groups of a configuration. The fields of this configuration have the same names as in
// our document.
func TestRecordedMutatePod(t *testing.T) {
	replay(t, "mutate-pod", func(r recorded) string {
		if !bytes.Contains(r.Pod, []byte(`"spec"`)) { // a pod from the API server has a spec with a scheduler name
			r.Pod = append(bytes.TrimSuffix(bytes.TrimSpace(r.Pod), []byte("}")), []byte(`, "spec": {"schedulerName": "default-scheduler"}}`)...)
		}
		got := podHandler(t, groupsOf(t, r.ResGroupsConfig)).fillIn(t.Context(), podRequest(r.Pod))
		ours, err := json.Marshal(got.Patches)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(patched(t, r.Pod, r.Patch), patched(t, r.Pod, ours)); diff != "" || !got.Allowed {
			return fmt.Sprintf("%s (-recorded +got):\n%s", message(got), diff)
		}
		return ""
	})
}

// groupsOf loads a recorded configuration. The recording has the Go names of the fields, so groupsOf first changes them to the names in a
// file.
func groupsOf(t *testing.T, config []map[string]any) []*Table {
	t.Helper()
	var written func(v any) any
	written = func(v any) any {
		fields, ok := v.(map[string]any)
		if !ok {
			return v
		}
		out := map[string]any{}
		for key, below := range fields {
			if below != nil {
				out[strings.ToLower(key[:1])+key[1:]] = written(below)
			}
		}
		return out
	}
	groups := make([]any, len(config))
	for i, group := range config {
		labels := group["Labels"]
		as := written(group).(map[string]any)
		as["labels"] = labels // the names of labels are not field names
		groups[i] = as
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": tableVersion, "kind": groupsKind, "metadata": map[string]any{"name": "recorded"}, "resourceGroups": groups,
	})
	if err != nil {
		t.Fatal(err)
	}
	tables, issues := LoadFile("recorded.yaml", data)
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	return tables
}
