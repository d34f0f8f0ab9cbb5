package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

func samples(t *testing.T) []*Table {
	t.Helper()
	tables, issues := LoadFS(os.DirFS("../samples/admission"))
	if tables == nil {
		t.Fatal(issues.Error())
	}
	return tables
}

// rights contains what users may do, each as "user verb resource.group/namespace/name". For the user "ill", Authorize returns an error.
type rights []string

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "ill" {
		return authorizer.DecisionNoOpinion, "", errors.New("nobody answers")
	}
	what := fmt.Sprintf("%s.%s/%s/%s", a.GetResource(), a.GetAPIGroup(), a.GetNamespace(), a.GetName())
	text := fmt.Sprintf("%s %s %s", a.GetUser().GetName(), a.GetVerb(), what)
	if slices.Contains(r, text) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// asked checks a Job of a user with the shipped rows and with the rows of a cluster. It returns the mistakes and warnings, one per line.
func asked(t *testing.T, own []*Table, who string, r Request) (string, error) {
	t.Helper()
	all := rights{"jane use queues.scheduling.volcano.sh//child", "jane get secrets./team/key"}
	in := cluster{authorizer: all}
	r.User = in.userOf(t.Context(), authenticationv1.UserInfo{Username: who, Groups: []string{"people"}})
	mistakes, warnings, err := jobTable(t).with(own).Check(r)
	var lines []string
	for _, m := range mistakes {
		lines = append(lines, m.String())
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n"), err
}

// jobIn returns a request to create the plain Job with these changes.
func jobIn(t *testing.T, change string) Request {
	t.Helper()
	return Request{
		Operation: opCreate, Object: merged(t, change), SchedulerNames: []string{"celsius"}, JobPlugins: jobPlugins(t),
		Queues: func() (queues []map[string]any, err error) {
			decodeText(t, theQueues, &queues)
			return queues, nil
		},
		NamespaceAnnotations: func() (map[string]string, error) { return nil, nil },
	}
}

// TestOwnSamples checks Jobs with the rules in samples/admission.
func TestOwnSamples(t *testing.T) {
	const worker = "tasks: [{name: w, replicas: %d, template: {spec: {restartPolicy: Never, containers: " +
		"[{name: a, image: x, resources: {limits: {nvidia.com/gpu: %q}}}]}}}]"
	for _, c := range []struct{ who, change, want string }{
		{"jane", "spec: {queue: child}", ""},
		{"joe", "spec: {queue: default}", ""},
		{"joe", "spec: {queue: child}", "spec.queue: user joe may not use queue child; ask its owner for the right to use it, or name another"},
		{
			"jane", "metadata: {namespace: prod}\nspec: {queue: child}",
			"spec.priorityClassName: is missing, and a job in namespace prod says how urgent it is; write one of those that " +
				"`kubectl get priorityclasses` lists",
		},
		{"jane", "metadata: {namespace: prod}\nspec: {queue: child, priorityClassName: high}", ""},
		{"joe", "spec: {queue: default, " + fmt.Sprintf(worker, 65, "1") + "}", ""},
	} {
		got, err := asked(t, samples(t), c.who, jobIn(t, c.change))
		if err != nil {
			t.Errorf("%s, %s: %v", c.who, c.change, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.who, c.change, diff)
		}
	}
	r := jobIn(t, "spec: {queue: research, "+fmt.Sprintf(worker, 13, "5")+"}")
	r.Queues = func() ([]map[string]any, error) {
		return []map[string]any{{"metadata": map[string]any{"name": "research"}}}, nil
	}
	got, err := asked(t, samples(t), "joe", r)
	want := "spec.tasks: ask for 65 GPUs, and a job in queue research may have 64; ask for fewer, or name another queue\n" +
		"spec.queue: user joe may not use queue research; ask its owner for the right to use it, or name another"
	if err != nil || got != want {
		t.Errorf("too many GPUs: %v\n%s", err, cmp.Diff(want, got))
	}
	r.Operation, r.OldObject = opUpdate, r.Object // the stored Job breaks a rule; other changes of it are accepted
	if got, err := asked(t, samples(t), "joe", r); err != nil || got != "" {
		t.Errorf("an update that has nothing to do with it: %v %s", err, got)
	}
}

// TestOwnPods checks pods with these rules. A pod without a group may only name a queue that its user may use.
func TestOwnPods(t *testing.T) {
	shipped, issues := PodTable()
	if shipped == nil {
		t.Fatal(issues.Error())
	}
	in := cluster{authorizer: rights{"jane use queues.scheduling.volcano.sh//child"}}
	annotated := func(key, value string) string { return "metadata: {annotations: {" + key + ": " + value + "}}" }
	const queue, group = "scheduling.volcano.sh/queue-name", "scheduling.k8s.io/group-name"
	for _, c := range []struct{ who, pod, old, want string }{
		{"joe", annotated(queue, "child"), "", "user joe may not use queue child"},
		{"jane", annotated(queue, "child"), "", ""},
		{"joe", annotated(group, "pair"), "", ""},
		{"joe", annotated(queue, "default"), "", ""},
		{"jane", annotated(queue, "child"), "spec: {}", "may not change after the pod was created"},
		{"joe", annotated(queue, "child"), annotated(queue, "child"), ""},
	} {
		r := jobIn(t, "{}")
		r.Object = mergedOver(t, plainPod, c.pod)
		r.User = in.userOf(t.Context(), authenticationv1.UserInfo{Username: c.who})
		r.Related = func() (*Related, error) { return &Related{}, nil }
		if c.old != "" {
			r.Operation, r.OldObject = opUpdate, mergedOver(t, plainPod, c.old)
		}
		mistakes, _, err := shipped.with(samples(t)).Check(r)
		if err != nil || len(mistakes) > 0 != (c.want != "") || c.want != "" && !strings.Contains(mistakes[0].Message, c.want) {
			t.Errorf("%s, %s: %v %v, want %q", c.who, c.pod, mistakes, err, c.want)
		}
	}
}

// TestOwnCronJobs checks that the rules of Jobs apply to the Jobs that a CronJob will make. The user who creates the CronJob must have the
// right to use the queue.
func TestOwnCronJobs(t *testing.T) {
	cronJobs, issues := CronJobTable()
	if cronJobs == nil {
		t.Fatal(issues.Error())
	}
	in := cluster{authorizer: rights{"jane use queues.scheduling.volcano.sh//child"}}
	table := linked([]*Table{cronJobs, jobTable(t).with(samples(t))})[0]
	for who, want := range map[string]string{"jane": "", "joe": "spec.jobTemplate.spec.queue: user joe may not use queue child"} {
		r := jobIn(t, "{}")
		r.Object = mergedOver(t, plainCronJob, "spec: {jobTemplate: {spec: {queue: child}}}")
		r.User = in.userOf(t.Context(), authenticationv1.UserInfo{Username: who})
		mistakes, _, err := table.Check(r)
		if err != nil || len(mistakes) > 0 != (want != "") || want != "" && !strings.HasPrefix(mistakes[0].String(), want) {
			t.Errorf("%s: %v %v, want %q", who, mistakes, err, want)
		}
	}
}

// TestOwnJobFlows checks that the rules of Jobs apply to the Jobs that a JobFlow will make: each JobTemplate together with its patch. The
// user who creates the JobFlow must have the right to use the queue of both.
func TestOwnJobFlows(t *testing.T) {
	jobFlows, issues := JobFlowTable()
	if jobFlows == nil {
		t.Fatal(issues.Error())
	}
	in := cluster{authorizer: rights{"jane use queues.scheduling.volcano.sh//child"}}
	table := linked([]*Table{jobFlows, jobTable(t).with(samples(t))})[0]
	for _, c := range []struct{ who, flows, want string }{
		{"jane", "[{name: load, patch: {jobSpec: {queue: child}}}]", ""},
		{"joe", "[{name: load, patch: {jobSpec: {queue: child}}}]", "spec.flows[0]: of its Job, spec.queue: user joe may not use queue child"},
		{"jane", "[{name: in-child}]", ""},
		{"joe", "[{name: in-child}]", "spec.flows[0]: of its Job, spec.queue: user joe may not use queue child"},
		{"joe", "[{name: in-child, patch: {jobSpec: {queue: default}}}]", ""},
		{"joe", "[{name: not-there, patch: {jobSpec: {queue: child}}}]", "spec.flows[0].patch: there is no JobTemplate not-there to patch"},
	} {
		r := jobIn(t, "{}")
		r.Object = mergedOver(t, plainJobFlow, "spec: {flows: "+c.flows+"}")
		r.User = in.userOf(t.Context(), authenticationv1.UserInfo{Username: c.who})
		tasks := jobIn(t, "{}").Object["spec"].(map[string]any)["tasks"]
		r.JobTemplates = func() ([]JobTemplate, error) {
			return []JobTemplate{
				{Name: "load", Spec: map[string]any{"tasks": tasks}}, {Name: "in-child", Spec: map[string]any{"queue": "child", "tasks": tasks}},
			}, nil
		}
		mistakes, _, err := table.Check(r)
		if err != nil || len(mistakes) > 0 != (c.want != "") || c.want != "" && !strings.HasPrefix(mistakes[0].String(), c.want) {
			t.Errorf("%s, %s: %v %v, want %q", c.who, c.flows, mistakes, err, c.want)
		}
	}
}

// TestOwnAccounts checks the service accounts of the pods of Jobs and CronJobs with the rules in samples/admission.
func TestOwnAccounts(t *testing.T) {
	cronJobs, issues := CronJobTable()
	if cronJobs == nil {
		t.Fatal(issues.Error())
	}
	jobs := jobTable(t).with(samples(t))
	in := cluster{authorizer: rights{"jane use serviceaccounts./default/uploader"}}
	const tasks = "tasks: [{name: w, replicas: 1, template: {spec: {serviceAccountName: %s, containers: [{name: a, image: x}]}}}]"
	const controllers = "system:serviceaccount:celsius-system:celsius-controllers"
	for _, c := range []struct {
		who, account string
		refused      bool
	}{
		{"jane", "uploader", false},
		{"joe", "uploader", true},
		{"joe", "default", false},
		{"joe", `""`, false},
		{controllers, "uploader", false}, // the Job of a CronJob; its user was checked before
	} {
		spec := fmt.Sprintf(tasks, c.account)
		field := "spec.tasks[0].template.spec.serviceAccountName"
		for _, asked := range []struct {
			table  *Table
			object map[string]any
			field  string
		}{
			{jobs, merged(t, "spec: {minAvailable: 1, "+spec+"}"), field},
			{
				linked([]*Table{cronJobs, jobs})[0], mergedOver(t, plainCronJob, "spec: {jobTemplate: {spec: {"+spec+"}}}"),
				"spec.jobTemplate." + field,
			},
		} {
			r := jobIn(t, "{}")
			r.Object, r.User = asked.object, in.userOf(t.Context(), authenticationv1.UserInfo{Username: c.who})
			mistakes, _, err := asked.table.Check(r)
			if err != nil || len(mistakes) > 0 != c.refused || c.refused && mistakes[0].Field != asked.field {
				t.Errorf("%s as %s: %v %v, want refused %t", c.who, c.account, mistakes, err, c.refused)
			}
		}
	}
}

// TestOwnGroups checks that the rules for queues apply to PodGroups that users create. They do not apply to PodGroups that the controllers
// create: these may use any queue.
func TestOwnGroups(t *testing.T) {
	table, issues := PodGroupTable()
	if table == nil {
		t.Fatal(issues.Error())
	}
	for who, want := range map[string]int{"joe": 1, "jane": 0, "system:serviceaccount:celsius-system:celsius-controllers": 0} {
		r := jobIn(t, "{}")
		r.Object = mergedOver(t, plainGroup, "{}")
		in := cluster{authorizer: rights{"jane use queues.scheduling.volcano.sh//child"}}
		r.User = in.userOf(t.Context(), authenticationv1.UserInfo{Username: who})
		mistakes, _, err := table.with(samples(t)).Check(r)
		if err != nil || len(mistakes) != want {
			t.Errorf("%s: %v %v", who, mistakes, err)
		}
	}
}

// ownRules returns rows of a cluster about a kind.
func ownRules(t *testing.T, kind, rows string) []*Table {
	t.Helper()
	const head = "apiVersion: rules.celsius.dev/v1alpha1\nkind: AdmissionRules\nmetadata: {name: own}\n"
	tables, issues := LoadFile("own.yaml", []byte(head+"of: "+kind+"\n"+rows))
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	return tables
}

// TestOwnUser checks rows about the rights and the groups of the user. It also checks the case that the API server does not answer.
func TestOwnUser(t *testing.T) {
	rule := ownRules(t, "Job", `
validations:
- name: key
  expression: "user.may('get', 'secrets', 'team', 'key') && 'people' in user.groups && user == user"
  fieldPath: spec
  message: no
`)
	for who, want := range map[string]string{"jane": "", "joe": "spec: no"} {
		if got, err := asked(t, rule, who, jobIn(t, "{}")); err != nil || got != want {
			t.Errorf("%s: %q %v", who, got, err)
		}
	}
	if _, err := asked(t, rule, "ill", jobIn(t, "{}")); err == nil || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("where the API server does not answer: %v", err)
	}
}

// TestOwnMistakes checks that the answer tells all mistakes at once. If an object exceeds the bounds, no other row is evaluated.
func TestOwnMistakes(t *testing.T) {
	never := ownRules(t, "Job", "validations: [{name: never, fieldPath: spec.minAvailable, message: never}]")
	got, err := asked(t, never, "jane", jobIn(t, "spec: {minAvailable: -1}"))
	if err != nil || !strings.Contains(got, "spec.minAvailable: never") || strings.Count(got, "\n") < 1 {
		t.Errorf("not all mistakes are told:\n%s", got)
	}
	small, err := jobTable(t).WithLimits(map[string]int64{"tasks": 1})
	if err != nil {
		t.Fatal(err)
	}
	mistakes, _, err := small.with(never).Check(jobIn(t, "spec: {tasks: [{name: a, replicas: 1}, {name: b, replicas: 1}]}"))
	if err != nil || slices.ContainsFunc(mistakes, func(m Mistake) bool { return m.Rule == "never" }) || len(mistakes) == 0 {
		t.Errorf("beyond the bounds: %v %v", mistakes, err)
	}
}

// TestOwnDefaults checks that the rows of a cluster see the values that were filled in before them.
func TestOwnDefaults(t *testing.T) {
	fills := ownRules(t, "Job", `
defaults:
- {name: more, when: "object.spec.queue == 'default'", fieldPath: spec.maxRetry, value: object.spec.maxRetry + 1}
`)
	object, wrong, err := jobTable(t).with(fills).Default(jobIn(t, "spec: {queue: null, maxRetry: null}"))
	if err != nil || len(wrong) > 0 || valueAt(t, object, "spec.maxRetry") != "4" {
		t.Errorf("filled in: %v %v %v", valueAt(t, object, "spec.maxRetry"), wrong, err)
	}
}

// TestOwnServed checks that the server evaluates these rows, with the user that the API server names.
func TestOwnServed(t *testing.T) {
	o := Options{AdmissionRules: samples(t)}.withDefaults()
	lists := func(context.Context) ([]schedulingv1beta1.Queue, error) {
		q := schedulingv1beta1.Queue{}
		q.Name = "research"
		return []schedulingv1beta1.Queue{q}, nil
	}
	none := func(context.Context, string) (map[string]string, error) { return nil, nil }
	endpoints, err := newEndpoints(o, cluster{queues: lists, annotations: none, authorizer: rights{}}, newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(merged(t, "spec: {queue: research}"))
	if err != nil {
		t.Fatal(err)
	}
	req := requestFor(admissionv1.Create, object, nil)
	req.UserInfo = authenticationv1.UserInfo{Username: "joe"}
	at := slices.IndexFunc(endpoints, func(e *endpoint) bool { return e.path == "/jobs/validate" })
	got := endpoints[at].handler.Handle(t.Context(), req)
	if got.Allowed || !strings.Contains(got.Result.Message, "user joe may not use queue research") {
		t.Errorf("joe gets %v %v", got.Allowed, got.Result)
	}
}

// TestOwnKnowSchedulers checks that the rows of all kinds know which schedulers are served.
func TestOwnKnowSchedulers(t *testing.T) {
	var o Options
	for kind := range kinds() {
		o.AdmissionRules = append(o.AdmissionRules, ownRules(t, kind,
			`validations: [{name: a, expression: "schedulerNames.size() == 0", fieldPath: metadata.name, message: "of {{schedulerNames}}"}]`)...)
	}
	var queues []schedulingv1beta1.Queue
	decodeText(t, theQueues, &queues)
	lists := func(context.Context) ([]schedulingv1beta1.Queue, error) { return queues, nil }
	templates := func(context.Context, string, map[string]any) ([]JobTemplate, error) { return nil, nil }
	in := cluster{queues: lists, jobTemplates: templates, authorizer: rights{}}
	endpoints, err := newEndpoints(o.withDefaults(), in, newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites() {
		fields := mergedOver(t, s.plain, "{}")
		object, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		req := requestFor(admissionv1.Create, object, nil)
		req.Kind.Kind = fields["kind"].(string)
		at := slices.IndexFunc(endpoints, func(e *endpoint) bool { return e.path == "/"+s.name+"s/validate" })
		got := endpoints[at].handler.Handle(t.Context(), req)
		if got.Result == nil || !strings.Contains(got.Result.Message, "of celsius, volcano") {
			t.Errorf("of a %s is said %v", s.name, got.Result)
		}
	}
}

// TestOwnDefaultsOfGroups checks that the API server calls the webhook for all PodGroups if the rows of a cluster fill in values.
func TestOwnDefaultsOfGroups(t *testing.T) {
	own := ownRules(t, "PodGroup", "defaults: [{name: one, fieldPath: spec.minMember, value: '1'}]")
	for _, rules := range [][]*Table{nil, own} {
		s := testServer(t, Options{AdmissionRules: rules}, fakeClient(t, interceptor.Funcs{}))
		at := slices.IndexFunc(s.endpoints, func(e *endpoint) bool { return e.path == "/podgroups/mutate" })
		if got := len(s.endpoints[at].conditions) > 0; got == (rules != nil) {
			t.Errorf("%d own tables: conditions %v", len(rules), s.endpoints[at].conditions)
		}
	}
}

// TestShippedNames checks that every name that the shipped tables include exists.
func TestShippedNames(t *testing.T) {
	tables, err := shippedTables()
	if err != nil {
		t.Fatal(err)
	}
	if issues := unknownNames(tables); issues != nil {
		t.Error(issues.Error())
	}
}

// TestOwnFiles checks that all mistakes of a folder are reported. A folder without tables is a mistake, too.
func TestOwnFiles(t *testing.T) {
	const head = "apiVersion: rules.celsius.dev/v1alpha1\nkind: AdmissionRules\n"
	const known = "known: action-known, may-change-queue, own, queue-uid, target, target-name"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{
			map[string]string{"a.yaml": head + "of: Jbo", "b.yml": head + "of: Job\n---\n" + head + "of: Queue\nwarnigs: []", "c.txt": "no"},
			`a.yaml:3:5: of: there are no rules of admission for "Jbo"; write one of Command, CronJob, Job, JobFlow, JobTemplate, Pod, ` +
				"PodGroup, Queue\n" +
				`b.yml:8:1: warnigs: unknown field "warnigs"; did you mean "warnings"?`,
		},
		{
			map[string]string{"c.txt": "no"},
			"the folder of rules of admission holds none; put a file *.yaml of kind AdmissionRules or ResourceGroups there, or leave the folder out",
		},
		{
			map[string]string{"a.yaml": head + "metadata: {nam: x}\nof: Job"},
			`a.yaml:3:12: metadata.nam: unknown field "nam"; did you mean "name"?`,
		},
		{
			map[string]string{"a.yaml": head + `of: Command
validations: [{name: own, expression: "true", fieldPath: action, message: no}]
---
` + head + `of: Queue
includes:
- name: another
  of: Command
  fields: [{fieldPath: action, value: "'OpenQueue'"}]
  warned: [own, owm, action-knwon]
- {name: more, of: Command, fields: [{fieldPath: action, value: "'OpenQueue'"}], only: [own]}`},
			`a.yaml:13:17: includes[0].warned[1]: no row of Command is called "owm"; did you mean "own"? (` + known + `)` + "\n" +
				`a.yaml:13:22: includes[0].warned[2]: no row of Command is called "action-knwon"; did you mean "action-known"? (` + known + `)` + "\n" +
				`a.yaml:14:89: includes[1].only[0]: no row of Command is called "own"; ` + strings.Replace(known, " own,", "", 1),
		},
	} {
		fsys := fstest.MapFS{}
		for name, text := range c.files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		tables, issues := LoadFS(fsys)
		var lines []string
		for _, i := range issues {
			lines = append(lines, i.Error())
		}
		if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" || tables != nil {
			t.Errorf("%d tables (-want +got):\n%s", len(tables), diff)
		}
	}
}
