package webhook

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

var _ = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// plainJob is the Job that each case changes. All its fields have values, and it has no mistakes.
const plainJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: default}
spec:
  schedulerName: celsius
  queue: default
  minAvailable: 3
  maxRetry: 3
  tasks:
  - name: work
    replicas: 3
    minAvailable: 3
    maxRetry: 3
    template: {spec: {containers: [{name: main, image: busybox}]}}
`

// theQueues are the queues of all cases.
const theQueues = `
- {metadata: {name: default}, status: {state: Open}}
- {metadata: {name: closed}, status: {state: Closed}}
- {metadata: {name: closing}, status: {state: Closing}}
- {metadata: {name: new}}
- {metadata: {name: root}, status: {state: Open}}
- {metadata: {name: parent}, spec: {parent: root}, status: {state: Open}}
- {metadata: {name: child}, spec: {parent: parent}, status: {state: Open}}
- {metadata: {name: busy}, spec: {parent: root}, status: {state: Open, allocated: {cpu: "1", pods: "2"}}}
- {metadata: {name: org, annotations: {volcano.sh/hierarchy: root/org/lab, volcano.sh/hierarchy-weights: 1/1/1}},
  spec: {parent: root, capability: {cpu: "10", memory: 10Gi}, deserved: {cpu: "8"}, guarantee: {resource: {cpu: "4"}}}}
- {metadata: {name: lab}, spec: {parent: org, capability: {cpu: "6"}, deserved: {cpu: "5"}, guarantee: {resource: {cpu: "2"}}}}
- {metadata: {name: bench}, spec: {parent: lab}}
- {metadata: {name: seat}, spec: {parent: bench, capability: {cpu: "3", memory: 4Gi}}}
- {metadata: {name: chair}, spec: {parent: seat}}
`

func decodeText(t testing.TB, text string, into any) {
	t.Helper()
	data, err := yaml.ToJSON([]byte(text))
	if err == nil {
		err = kubejson.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
}

// plainGroup is the same for PodGroups.
const plainGroup = `
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair, namespace: default}
spec: {queue: child, minMember: 2}
`

// plainQueue is the same for Queues.
const plainQueue = `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: new}
spec: {weight: 1, reclaimable: true}
`

// plainPod is the same for Pods.
const plainPod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {schedulerName: celsius, containers: [{name: main, image: busybox}]}
`

// plainCommand is the same for Commands.
const plainCommand = `
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: stop, namespace: default}
action: AbortJob
target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: "1"}
`

// plainCronJob is the same for CronJobs.
const plainCronJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, namespace: default}
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  jobTemplate:
    spec:
      tasks:
      - replicas: 3
        template: {spec: {containers: [{name: main, image: busybox}]}}
`

// plainJobTemplate is the same for JobTemplates.
const plainJobTemplate = `
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: train, namespace: default}
spec:
  tasks:
  - name: work
    replicas: 3
    template: {spec: {containers: [{name: main, image: busybox}]}}
`

// plainJobFlow is the same for JobFlows.
const plainJobFlow = `
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly, namespace: default}
spec:
  flows:
  - name: load
  - {name: train, dependsOn: {targets: [load]}}
`

// theTemplates are the JobTemplates of all cases.
const theTemplates = `
- {Name: load, Spec: {tasks: [{name: work, replicas: 1, template: {spec: {containers: [{name: main, image: busybox}]}}}]}}
- {Name: train, Spec: {tasks: [{name: work, replicas: 3, template: {spec: {containers: [{name: main, image: busybox}]}}}]}}
- {Name: in-root, Spec: {queue: root, tasks: [{name: work, replicas: 1, template: {spec: {containers: [{name: main, image: busybox}]}}}]}}
- {Name: big, Size: 2000000, Spec: {tasks: [{name: work, replicas: 1, template: {spec: {containers: [{name: main, image: a}]}}}]}}
`

// suite is a kind that has a table, with its cases in testdata.
type suite struct {
	name, plain string
	table       func() (*Table, source.Issues)
}

func suites() []suite {
	return []suite{
		{"job", plainJob, limitedTable},
		{"podgroup", plainGroup, sync.OnceValues(withPods(PodGroupTable))},
		{"queue", plainQueue, sync.OnceValues(QueueTable)},
		{"pod", plainPod, sync.OnceValues(PodTable)},
		{"command", plainCommand, sync.OnceValues(CommandTable)},
		{"cronjob", plainCronJob, linkedTo(CronJobTable)},
		{"jobtemplate", plainJobTemplate, linkedTo(JobTemplateTable)},
		{"jobflow", plainJobFlow, linkedTo(func() (*Table, source.Issues) {
			table, issues := JobFlowTable()
			if table == nil {
				return nil, issues
			}
			table, err := table.WithLimits(map[string]int64{"flows": 5, "targets": 3, "probes": 3})
			if err != nil {
				return nil, source.Issues{{Message: err.Error()}}
			}
			return table, issues
		})},
	}
}

// linkedTo returns the table of a kind whose objects make Jobs, linked to the table of Jobs.
func linkedTo(compile func() (*Table, source.Issues)) func() (*Table, source.Issues) {
	return func() (*Table, source.Issues) {
		table, issues := compile()
		jobs, more := shippedTable()
		if table == nil || jobs == nil {
			return nil, append(issues, more...)
		}
		return linked([]*Table{table, jobs})[0], issues
	}
}

// merged returns the plain Job with the changes of a case.
func merged(t testing.TB, change string) map[string]any {
	t.Helper()
	return mergedOver(t, plainJob, change)
}

func mergedOver(t testing.TB, plain, change string) map[string]any {
	t.Helper()
	base, err := yaml.ToJSON([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.ToJSON([]byte(change))
	if err != nil {
		t.Fatalf("%s\n%v", change, err)
	}
	data, err := jsonpatch.MergePatch(base, patch)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := kubejson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// jobCases reads testdata/job.txtar. It returns the requests by name.
func jobCases(t testing.TB, archive *txtar.Archive) map[string]Request {
	t.Helper()
	return suites()[0].cases(t, archive)
}

// relatedIn returns the object that the object of a case names. It is in NAME.related. Without this file, the result is nil.
func relatedIn(t testing.TB, archive *txtar.Archive, name string) *Related {
	t.Helper()
	f := fileOf(archive, name+".related")
	if f == nil {
		return nil
	}
	found := &Related{}
	decodeInto(t, f.Data, found)
	return found
}

// queuesIn returns the queues of the cluster: NAME.queues, or those of all cases.
func queuesIn(t testing.TB, archive *txtar.Archive, name string) (out []map[string]any) {
	t.Helper()
	text := theQueues
	if f := fileOf(archive, name+".queues"); f != nil {
		text = string(f.Data)
	}
	decodeText(t, text, &out)
	return out
}

// userIn returns the user of a case. The user may do everything except what NAME.forbidden lists.
func userIn(archive *txtar.Archive, name string) User {
	return User{Name: "jane", May: func(verb, group, resource, namespace, object string) (bool, error) {
		f := fileOf(archive, name+".forbidden")
		return f == nil || !strings.Contains(string(f.Data), fmt.Sprintf("%s %s.%s/%s/%s\n", verb, resource, group, namespace, object)), nil
	}}
}

// cases returns the requests by name. NAME.namespace contains the annotations of the namespace.
func (s suite) cases(t testing.TB, archive *txtar.Archive) map[string]Request {
	t.Helper()
	l, err := newLifecycles(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var templates []JobTemplate
	decodeText(t, theTemplates, &templates)
	out := map[string]Request{}
	for _, f := range archive.Files {
		name, isJob := strings.CutSuffix(f.Name, "."+s.name)
		if !isJob {
			continue
		}
		r := Request{
			Operation: opCreate, Object: mergedOver(t, s.plain, string(f.Data)), SchedulerNames: []string{"celsius", "volcano"},
			Queues:       func() ([]map[string]any, error) { return queuesIn(t, archive, name), nil },
			PolicyEvents: l.job.PolicyEvents(), PolicyActions: l.job.PolicyActions(), JobPlugins: jobPlugins(t),
			CommandActions: map[string][]string{"Job": l.job.CommandActions(), "Queue": l.queue.CommandActions()},
			Related:        func() (*Related, error) { return relatedIn(t, archive, name), nil },
			JobTemplates:   func() ([]JobTemplate, error) { return templates, nil },
			User:           userIn(archive, name),
		}
		if gone := fileOf(archive, name+".deleted"); gone != nil {
			r.Operation, r.Object, r.OldObject = opDelete, nil, mergedOver(t, s.plain, string(gone.Data))
		}
		if old := fileOf(archive, name+".old"); old != nil {
			r.Operation, r.OldObject = opUpdate, mergedOver(t, s.plain, string(old.Data))
		}
		annotations := map[string]string{}
		if namespace := fileOf(archive, name+".namespace"); namespace != nil {
			decodeInto(t, namespace.Data, &annotations)
		}
		r.NamespaceAnnotations = func() (map[string]string, error) { return annotations, nil }
		out[name] = r
	}
	return out
}

func fileOf(archive *txtar.Archive, name string) *txtar.File {
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &archive.Files[i]
}

// outcome returns everything that a table decides about a request, one result per line.
func outcome(t testing.TB, table *Table, r Request) string {
	t.Helper()
	var b strings.Builder
	tell := func(word string, mistakes []Mistake) {
		for _, m := range mistakes {
			rule := ""
			if m.Rule != "" {
				rule = "   [" + m.Rule + "]"
			}
			fmt.Fprintf(&b, "%s %s%s\n", word, m, rule)
		}
	}
	var filled map[string]any
	var mistakes []Mistake
	var err error
	if r.Operation != opDelete {
		if filled, mistakes, err = table.Default(r); err != nil {
			return "error " + err.Error() + "\n"
		}
	}
	if tell("refuse", mistakes); len(mistakes) > 0 {
		return b.String()
	}
	differing("", r.Object, filled, func(path string) {
		fmt.Fprintf(&b, "set %s: %s\n", path, valueAt(t, filled, path))
	})
	r.Object = filled
	mistakes, warnings, err := table.Check(r)
	if err != nil {
		return b.String() + "error " + err.Error() + "\n"
	}
	tell("refuse", mistakes)
	for _, w := range warnings {
		fmt.Fprintf(&b, "warn %s\n", w)
	}
	if b.Len() == 0 {
		return "take\n"
	}
	return b.String()
}

func valueAt(t testing.TB, object any, path string) string {
	t.Helper()
	steps, err := typed.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(steps.Get(object))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// shippedTable is compiled once for all tests.
var shippedTable = sync.OnceValues(withPods(JobTable))

// withPods returns a table that includes rows of the table of Pods.
func withPods(of func() (*Table, source.Issues)) func() (*Table, source.Issues) {
	return func() (*Table, source.Issues) {
		table, issues := of()
		pods, more := PodTable()
		if table == nil || pods == nil {
			return nil, append(issues, more...)
		}
		return linked([]*Table{table, pods})[0], issues
	}
}

func jobPlugins(t testing.TB) *jobplugin.Set {
	t.Helper()
	set, issues := jobplugin.Default()
	if set == nil {
		t.Fatal(issues.Error())
	}
	return set
}

func jobTable(t testing.TB) *Table {
	t.Helper()
	table, issues := shippedTable()
	if table == nil || len(issues) > 0 {
		t.Fatal(issues.Error())
	}
	return table
}

// limitedTable returns the shipped table with small limits, so that short cases can exceed them.
func limitedTable() (*Table, source.Issues) {
	table, issues := shippedTable()
	if table == nil {
		return nil, issues
	}
	table, err := table.WithLimits(map[string]int64{"tasks": 5, "policies": 5, "events": 5, "dependencies": 5, "volumes": 5})
	if err != nil {
		return nil, source.Issues{{Message: err.Error()}}
	}
	return table, issues
}

// read returns the table, the archive and the cases.
func (s suite) read(t testing.TB) (*Table, *txtar.Archive, map[string]Request) {
	t.Helper()
	archive, err := txtar.ParseFile(s.file())
	if err != nil {
		t.Fatal(err)
	}
	table, issues := s.table()
	if table == nil || len(issues) > 0 {
		t.Fatal(issues.Error())
	}
	return table, archive, s.cases(t, archive)
}

func (s suite) file() string { return "testdata/" + s.name + ".txtar" }

func TestTables(t *testing.T) {
	for _, s := range suites() {
		t.Run(s.name, s.run)
	}
}

func (s suite) run(t *testing.T) {
	table, archive, cases := s.read(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			got, want := outcome(t, table, cases[name]), fileOf(archive, name+".want")
			if want == nil {
				t.Fatalf("there is no %s.want", name)
			}
			if updating() {
				want.Data = []byte(got)
			} else if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if updating() {
		if err := os.WriteFile(s.file(), txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDefaultScheduler checks that a Job without a scheduler name gets the first name that is served. So a cluster can choose volcano.
func TestDefaultScheduler(t *testing.T) {
	for _, names := range [][]string{{"celsius", "volcano"}, {"volcano", "celsius"}} {
		filled, mistakes, err := jobTable(t).Default(Request{
			JobPlugins: jobPlugins(t),
			Operation:  opCreate, Object: merged(t, "spec: {schedulerName: null}"),
			SchedulerNames: names,
		})
		if err != nil || len(mistakes) > 0 {
			t.Fatal(err, mistakes)
		}
		if got := valueAt(t, filled, "spec.schedulerName"); got != `"`+names[0]+`"` {
			t.Errorf("served are %v, and the Job gets %s", names, got)
		}
	}
}

// TestLimits checks that the limits of a cluster replace the shipped limits. The compatibility page must list each shipped limit. Mistakes
// in given limits must be reported.
func TestLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	shipped := jobTable(t)
	for name, value := range shipped.Limits() {
		if !strings.Contains(string(page), fmt.Sprintf("| `%s` | %d |", name, value)) {
			t.Errorf("docs/compatibility.md does not tell of the limit %s, %d", name, value)
		}
	}
	flows, issues := JobFlowTable()
	if flows == nil {
		t.Fatal(issues.Error())
	}
	for name, value := range flows.Limits() {
		if !strings.Contains(string(page), fmt.Sprintf("| `%s` | %d |", name, value)) {
			t.Errorf("docs/compatibility.md does not tell of the limit %s, %d", name, value)
		}
	}
	own, err := shipped.WithLimits(map[string]int64{"pods": 2})
	if err != nil {
		t.Fatal(err)
	}
	r := Request{
		Operation: opCreate, Object: merged(t, "spec: {queue: nowhere}"), SchedulerNames: []string{"celsius"}, JobPlugins: jobPlugins(t),
	}
	want := "refuse spec.tasks: ask for 3 pods together, and a job may have 2 here; ask for fewer   [too-many-pods]\n"
	if got := outcome(t, own, r); got != want {
		t.Errorf("with a limit of two pods: %s", got)
	}
	if mistakes, _, err := own.Check(r); err != nil || len(mistakes) != 1 {
		t.Errorf("checked without defaults: %v %v", mistakes, err)
	}
	for _, c := range []struct {
		limits map[string]int64
		want   string
	}{
		{map[string]int64{"pod": 1}, `there is no limit "pod" of a Job; did you mean pods? the limits are dependencies, events, pods, ` +
			`policies, tasks, volumes`},
		{map[string]int64{"pods": 0}, "limit pods of a Job is 0; write 1 or more"},
	} {
		if _, err := shipped.WithLimits(c.limits); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.limits, err, c.want)
		}
	}
}

// TestEveryRowMatters removes each row from the table in turn. At least one case must then have another result.
func TestEveryRowMatters(t *testing.T) {
	for _, s := range suites() {
		t.Run(s.name, s.everyRowMatters)
	}
}

func (s suite) everyRowMatters(t *testing.T) {
	table, _, cases := s.read(t)
	before := map[string]string{}
	for name, r := range cases {
		before[name] = outcome(t, table, r)
	}
	for name, rows := range map[string]func(*Table) *[]*row{
		"matchConditions": func(t *Table) *[]*row { return &t.match },
		"bounds":          func(t *Table) *[]*row { return &t.bounds },
		"defaults":        func(t *Table) *[]*row { return &t.defaults },
		"validations":     func(t *Table) *[]*row { return &t.validations },
		"warnings":        func(t *Table) *[]*row { return &t.warnings },
	} {
		all := *rows(table)
		if len(all) == 0 && s.name == "job" {
			t.Errorf("%s has no rows", name)
		}
		for i, row := range all {
			without := *table
			*rows(&without) = slices.Delete(slices.Clone(all), i, i+1)
			if !slices.ContainsFunc(slices.Collect(maps.Keys(cases)), func(c string) bool { return outcome(t, &without, cases[c]) != before[c] }) {
				t.Errorf("%s: without the row %s every case comes out as before", name, row.name)
			}
		}
	}
	for i, row := range table.includes {
		without := *table
		without.includes = slices.Delete(slices.Clone(table.includes), i, i+1)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(cases)), func(c string) bool { return outcome(t, &without, cases[c]) != before[c] }) {
			t.Errorf("includes: without the row %s every case comes out as before", row.name)
		}
	}
}

// TestNotHonoured compares three lists of fields that are accepted but have no effect. The lists are the warnings here, the events of the
// controllers, and the compatibility page.
func TestNotHonoured(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	groups, issues := PodGroupTable()
	queues, more := QueueTable()
	if groups == nil || queues == nil {
		t.Fatal(append(issues, more...).Error())
	}
	for _, row := range slices.Concat(jobTable(t).warnings, groups.warnings, queues.warnings) {
		if !strings.Contains(string(page), "`"+row.name+"`") {
			t.Errorf("docs/compatibility.md does not name the warning `%s`", row.name)
		}
		if len(row.operations) != 1 || row.operations[0] != opCreate {
			t.Errorf("%s: who made the job is told once, on CREATE", row.name)
		}
		paths = append(paths, row.fieldPath.Outline("*"))
	}
	data, err := os.ReadFile("../statemachines/controller/notyet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var told []struct{ Path string }
	decodeInto(t, data, &told)
	for _, f := range told {
		if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, f.Path) }) {
			t.Errorf("%s: the controllers tell of it, and no warning does", f.Path)
		}
	}
}

func decodeInto(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestMistakesInTables checks that a mistake in a table is reported at its place.
func TestMistakesInTables(t *testing.T) {
	const known = "Command, CronJob, Job, JobFlow, JobTemplate, Pod, PodGroup, Queue"
	for _, c := range []struct{ table, want string }{
		{"of: Jbo", `job.yaml:3:5: of: there are no rules of admission for "Jbo"; write one of ` + known},
		{"of: Job\ndefalts: []", `job.yaml:4:1: defalts: unknown field "defalts"; did you mean "defaults"?`},
		{
			"of: Job\nvalidations:\n- {name: a, expression: object.spec.taks.size() > 0, fieldPath: spec.tasks, message: a}",
			`job.yaml:5:37: validations[0].expression: Job.spec has no field "taks"; did you mean "tasks"?`,
		},
		{
			"of: Job\nvalidations:\n- {name: a, expression: 'true', fieldPath: spec.taks, message: a}",
			"job.yaml:5:44: validations[0].fieldPath: Job has no such field; write the path of a field, such as spec.tasks[{{i}}].name of a " +
				"Job",
		},
		{
			"of: Job\nvalidations:\n- {name: a, expression: 'true', fieldPath: spec.tasks}",
			"job.yaml:5:3: validations[0]: message is missing; add message",
		},
		{
			"of: Job\nvalidations:\n- {name: a, expression: '1', fieldPath: spec.tasks, message: a}",
			"job.yaml:5:26: validations[0].expression: gives an int, but this place wants true or false",
		},
		{
			"of: Job\nvalidations:\n- {name: a, expression: 'true', fieldPath: spec.tasks, message: 'a {{object.spec'}",
			"job.yaml:5:68: validations[0].message: {{ is never closed; write }} after the expression",
		},
		{"of: Job\nlimits:\n- {name: pods, value: 0}", "job.yaml:5:23: limits[0].value: the limit is 0; write 1 or more"},
		{
			"of: Job\nlimits:\n- {name: pods, value: 1}\nbounds:\n- {name: a, expression: limits.pod > 0, fieldPath: spec.tasks, message: a}",
			`job.yaml:7:32: bounds[0].expression: Limits has no field "pod"; did you mean "pods"?`,
		},
		{
			"of: Job\nvalidations:\n- {name: a, operations: [DELETE], fieldPath: spec.tasks, message: a}",
			`job.yaml:5:25: validations[0].operations: there is no operation "DELETE"; write CREATE or UPDATE`,
		},
		{
			"of: Job\ndefaults:\n- {name: a, fieldPath: spec.maxRetry, value: \"'3'\"}",
			"job.yaml:5:24: defaults[0].fieldPath: the field is a whole number, the value of type string",
		},
		{
			"of: Job\nvalidations:\n- {name: a, forEach: [{item: queues, in: object.spec.tasks}], fieldPath: spec.tasks, message: a}",
			`job.yaml:5:23: validations[0].forEach[0]: "queues" is the name of something that all rows see; use another name`,
		},
		{
			"of: Job\nvalidations:\n- {name: a, forEach: [{item: x, in: object.spec}], fieldPath: spec.tasks, message: a}",
			"job.yaml:5:37: validations[0].forEach[0].in: gives a Job.spec, but this place wants a list",
		},
		{
			"of: CronJob\nincludes:\n- {name: a, of: Jbo, fields: []}",
			`job.yaml:5:17: includes[0].of: there are no rules of admission for "Jbo"; write one of ` + known,
		},
		{
			"of: CronJob\nincludes:\n- {name: a, of: Job, fields: [{fieldPath: spce, value: object.spec}]}",
			"job.yaml:5:43: includes[0].fields[0].fieldPath: Job has no such field; write the path of a field, such as spec",
		},
		{
			"of: JobTemplate\nincludes:\n- {name: a, of: Job, fieldPath: spec, message: '{{tolt}}', fields: [{fieldPath: spec, value: '{}'}]}",
			`job.yaml:5:51: includes[0].message: "tolt" is not known here; did you mean "told"?`,
		},
		{
			"of: Job\nvariables:\n- {name: a, expression: '1'}\nvalidations:\n- {name: a, fieldPath: spec.tasks, message: a}",
			`job.yaml:7:10: validations[0].name: duplicate name "a" (first on line 5); give it a name of its own`,
		},
	} {
		docs, issues := source.Parse("job.yaml", []byte("apiVersion: rules.celsius.dev/v1alpha1\nkind: AdmissionRules\n"+c.table+"\n"))
		if len(docs) != 1 {
			t.Fatal(issues.Error())
		}
		table, issues := Load(docs[0])
		if len(issues) != 1 || table != nil {
			t.Errorf("%s: %d issues:\n%s", c.table, len(issues), issues.Error())
			continue
		}
		if diff := cmp.Diff(c.want, issues[0].Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.table, diff)
		}
	}
}
