package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/live/serving"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// remedy is a message with a remedy, and the command that carries the remedy out.
type remedy struct {
	// line is the command that prints the message.
	line string
	// words are the part of the message that states the remedy. Each command and flag in it must be in fix, word for word. A word in capital
	// letters stands for a value.
	words string
	// fix is the command that carries the remedy out. It must succeed, and must not print the message again.
	fix string
	// again is a command that must not print the message after fix. If again is empty, fix is the corrected form of line.
	again string
	// with is the text that replaces the word WITH in the file that line reads.
	with string
	// edits change the file that line reads, as the remedy states, each in the form "OLD => NEW". Then fix is empty, and line runs again.
	edits []string
	// page is a document and the words of it that state the remedy, in the form "FILE: WORDS". It is empty for a remedy of a message.
	page string
}

// readRemedies reads the section remedies of testdata/remedies.txtar or of testdata/fields.txtar, whose heads describe the lines.
func readRemedies(t *testing.T, text string) (out []remedy) {
	t.Helper()
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind == "$" {
			out = append(out, remedy{line: rest})
			continue
		}
		if len(out) == 0 {
			continue // a heading
		}
		last := &out[len(out)-1]
		switch kind {
		case "says":
			last.words = rest
		case "run":
			last.fix = rest
		case "again":
			last.again = rest
		case "with":
			last.with = rest
		case "edit":
			last.edits = append(last.edits, rest)
		case "page":
			last.page = rest
		}
	}
	return out
}

// bench runs the commands of remedies on files in a folder and on a cluster of objects in memory.
type bench struct {
	t        *testing.T
	cluster  client.WithWatch
	remedies []remedy
}

func newBench(t *testing.T, suspended string) *bench {
	t.Helper()
	data := testdata(t)
	var files []txtar.File
	for _, name := range []string{"remedies.txtar", "fields.txtar"} {
		archive, err := txtar.ParseFile(filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, archive.Files...)
	}
	recording, dir := recordCycles(t), t.TempDir()
	t.Chdir(dir)
	const scenario = "load world\ncycle\ncmp decided\n-- world --\napiVersion: sim.celsius.dev/v1alpha1\nkind: World\n" +
		"nodes: [{name: n1, cpu: 4}]\n-- decided --\nnothing to decide\n"
	write(t, "scenario.txtar", scenario)
	write(t, "scenarios/one.txtar", scenario)
	for name, of := range map[string]string{
		"recording": recording, "openb": filepath.Join(data, "openb"), "samples": filepath.Join(data, "../../../samples"),
	} {
		if err := os.Symlink(of, name); err != nil {
			t.Fatal(err)
		}
	}
	scheme, err := cluster.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	none := func(client.Object) []string { return nil }
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&corev1.Event{}, "involvedObject.name", none)
	var list []remedy
	for _, f := range files {
		write(t, f.Name, string(f.Data))
		if strings.Contains(string(f.Data), "WITH") {
			write(t, filepath.Join("templates", f.Name), string(f.Data))
		}
		if f.Name == "remedies" {
			list = append(list, readRemedies(t, string(f.Data))...)
		}
		if f.Name != "objects.yaml" && f.Name != "gone.yaml" {
			continue
		}
		for document := range strings.SplitSeq(strings.ReplaceAll(string(f.Data), "SUSPENDED", suspended), "\n---\n") {
			b.WithObjects(stored(t, scheme, document, f.Name == "gone.yaml"))
		}
	}
	return &bench{t, interceptor.NewClient(b.Build(), interceptor.Funcs{Create: controlled}), list}
}

// write writes a file, and creates its folder.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// stored returns an object as the cluster stores it. For a deleted policy, the cluster stores only the revision that served.
func stored(t *testing.T, scheme *runtime.Scheme, document string, gone bool) client.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case gone:
		labels := map[string]string{serving.LabelScheduler: "celsius", serving.LabelPolicy: "gone", serving.LabelGeneration: "1"}
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "celsius-system", Name: "gone-1", Labels: labels},
			Revision:   1, Data: runtime.RawExtension{Raw: data},
		}
	case strings.Contains(document, "SchedulingPolicy"):
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		return u
	}
	o, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), data)
	if err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return o.(client.Object)
}

// controlled stores an object. It carries out a Command at once, as the controllers do.
func controlled(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
	command, ok := o.(*busv1alpha1.Command)
	if !ok {
		return to.Create(ctx, o, options...)
	}
	command.Name, command.ResourceVersion = command.GenerateName+"x", "1"
	key := client.ObjectKey{Namespace: command.Namespace, Name: command.TargetObject.Name}
	switch command.Action {
	case "OpenQueue":
		queue := &schedulingv1beta1.Queue{}
		if err := to.Get(ctx, client.ObjectKey{Name: key.Name}, queue); err != nil {
			return err
		}
		queue.Status.State = schedulingv1beta1.QueueStateOpen
		return to.Update(ctx, queue)
	case "ResumeJob":
		job := &batchv1alpha1.Job{}
		if err := to.Get(ctx, key, job); err != nil {
			return err
		}
		job.Status.State = batchv1alpha1.JobState{Phase: batchv1alpha1.Restarting}
		return to.Update(ctx, job)
	}
	return fmt.Errorf("the test has no controller for %s", command.Action)
}

// run returns what a line prints, and whether it succeeds.
func (b *bench) run(line string) (string, bool) {
	b.t.Helper()
	if first, piped := strings.CutSuffix(line, " | kubectl apply -f -"); piped {
		text, ok := b.run(first)
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil || !ok {
			return text, false
		}
		err := b.cluster.Create(b.t.Context(), u)
		return fmt.Sprint(err), err == nil
	}
	o := cluster.Options{
		Connect: func(*genericclioptions.ConfigFlags) (*cluster.Reach, error) {
			return &cluster.Reach{WithWatch: b.cluster, Raw: func(_ context.Context, path, _ string, body []byte) ([]byte, error) {
				if strings.HasSuffix(path, "whatifs") {
					return body, nil
				}
				if strings.HasPrefix(path, "/apis/"+questions.Group+"/") { // the answer of the scheduler
					return []byte("{}"), nil
				}
				if path == "/version" {
					return []byte(`{"gitVersion":"v1.34.0"}`), nil
				}
				return nil, errors.New("the cluster in memory serves objects alone")
			}}, nil
		},
		Now: func() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) }, Patience: time.Millisecond,
		Env: func(string) string { return "" },
	}
	var out bytes.Buffer
	words := strings.Fields(line)
	if words[0] == "vcctl" {
		code := cluster.Execute(with(cluster.New("vcctl", o), words[1:], strings.NewReader(""), &out, &out))
		return out.String(), code == exitOK
	}
	root := newRootCommand()
	policy, _, err := root.Find([]string{"policy"})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range cluster.PolicyCommands(o) {
		replaced, _, err := policy.Find([]string{c.Name()})
		if err != nil {
			b.t.Fatal(err)
		}
		policy.RemoveCommand(replaced)
		policy.AddCommand(c)
	}
	for _, c := range cluster.Commands(o) {
		replaced, _, err := root.Find([]string{c.Name()})
		if err != nil {
			b.t.Fatal(err)
		}
		root.RemoveCommand(replaced)
		root.AddCommand(c)
	}
	code := exitCode(with(root, words[1:], strings.NewReader(""), &out, &out).Execute(), &out)
	return out.String(), code == exitOK
}

// named matches a command or a flag in the words of a remedy.
var named = regexp.MustCompile(`celsius(?: [a-z][a-z-]*)+|kubectl [^)]*|--?[a-z][a-z-]*`)

// TestRemedies prints each message that names a command or a flag as its remedy, and runs the remedy word for word. The remedy must
// succeed, and the message must not be printed again. The test fails if no line prints a message of the programs, unless
// remediedElsewhere lists the message.
func TestRemedies(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	known, fields, here := remedyMessages(t), fieldMessages(t), filepath.Dir(testdata(t))
	b := newBench(t, suspendedMessage())
	var printed strings.Builder
	var stated, words []string // the lines that state a remedy, and the words that are carried out
	for _, r := range b.remedies {
		b.fill(r)
		before, _ := b.run(r.line)
		if len(r.edits) == 0 {
			printed.WriteString(before)
		}
		if !strings.Contains(before, r.words) {
			t.Errorf("%s does not print %q:\n%s", r.line, r.words, before)
			continue
		}
		stated, words = append(stated, linesWith(before, r.words)...), append(words, r.words)
		b.carryOut(r)
	}
	if len(b.remedies) < 50 {
		t.Errorf("%d remedies are read, want at least 50", len(b.remedies))
	}
	elsewhere, missing := remediedElsewhere(), map[string]string{}
	for text, file := range known {
		if isPrinted := printedAs(text).MatchString(printed.String()); !isPrinted && elsewhere[text] == "" {
			missing[text] = file
		} else if isPrinted && elsewhere[text] != "" {
			t.Errorf("%q is printed here, and need not be listed as remedied elsewhere", text)
		}
	}
	checkElsewhere(t, here, elsewhere, known)
	for _, text := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s: no test carries out the remedy of %q", missing[text], text)
	}
	checkFields(t, here, stated, words, fields)
}

// checkElsewhere checks a list of messages that other tests print: each message and each test exists.
func checkElsewhere(t *testing.T, here string, elsewhere, known map[string]string) {
	t.Helper()
	for text, where := range elsewhere {
		if known[text] == "" {
			t.Errorf("no message is %q: correct or remove the entry", text)
		}
		if file, test, ok := strings.Cut(where, " Test"); ok && !strings.Contains(read(t, filepath.Join(here, file)), "\nfunc Test"+test+"(") {
			t.Errorf("%q: %s has no Test%s", text, file, test)
		}
	}
}

// carryOut runs the command of a remedy, and checks that the command contains each command and flag that the message names.
func (b *bench) carryOut(r remedy) {
	b.t.Helper()
	if len(r.edits) > 0 {
		b.edit(r)
		return
	}
	fixed := r.fix // and the files that it reads, because they contain the arguments of plugins
	for name := range strings.FieldsSeq(r.fix) {
		if data, err := os.ReadFile(name); err == nil && strings.HasSuffix(name, ".yaml") {
			fixed += "\n" + string(data)
		}
	}
	for _, word := range named.FindAllString(r.words, -1) {
		if !strings.Contains(fixed+" ", word+" ") && !strings.Contains(fixed, word+"=") && !strings.Contains(r.line, word) {
			b.t.Errorf("%s: the remedy names %q, but what is run is %s", r.line, word, r.fix)
		}
	}
	after, ok := b.run(r.fix)
	if !ok || strings.Contains(after, r.words) {
		b.t.Errorf("%s: the remedy fails: %s\n%s", r.line, r.fix, after)
		return
	}
	if r.again == "" {
		return
	}
	if err := b.writeNow(); err != nil {
		b.t.Fatal(err)
	}
	if again, ok := b.run(r.again); !ok || strings.Contains(again, r.words) {
		b.t.Errorf("after %s the message is printed again by %s:\n%s", r.fix, r.again, again)
	}
}

// TestAllMistakesArePrinted checks a remedy of admission. If a policy has more mistakes than one answer contains, celsius policy check
// prints all of them.
func TestAllMistakesArePrinted(t *testing.T) {
	const n = 150
	var policy strings.Builder
	policy.WriteString("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: faulty}\nspec:\n" +
		"  pipeline: [allocate]\n  tiers:\n  - name: own\n    tables:\n    - name: own\n      inline:\n        predicates:\n")
	for i := range n {
		fmt.Fprintf(&policy, "        - {name: row-%d, expression: nothing%d}\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := run([]string{"policy", "check", file}, nil, &out, &out)
	if found := strings.Count(out.String(), "is not known here"); code != exitMistakes || found != n {
		t.Errorf("exit code %d, %d mistakes, want %d", code, found, n)
	}
}

// TestRemediesOfPendingPage runs each command of docs/pending.md on the world and the policy of the scenario of its section. It prints what
// the section promises. The commands what-if are left out, because the scenarios run them.
func TestRemediesOfPendingPage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	page := read(t, "../../docs/pending.md")
	// For each command of the page: the command that runs instead, because the first one may need a cluster, and a part of its output.
	runs := map[string]struct{ line, prints string }{
		"celsius explain queue small":              {"celsius simulate --explain small --policy p world.yaml policy.yaml", "waits"},
		"celsius explain node NAME":                {"celsius simulate --explain n1 --policy p world.yaml policy.yaml", "gpu"},
		"celsius queue operate shut --action open": {"celsius queue operate shut --action open", "is Open"},
		"celsius queue list":                       {"celsius queue list", "shut"},
		"celsius job view NAME":                    {"celsius job view paused -n team", "paused"},
		"celsius policy show FILE":                 {"celsius policy show policy.yaml", "paid-for"},
	}
	command := regexp.MustCompile("`(celsius [^`]+)`")
	link := regexp.MustCompile(`\[scenario\]\(\.\./(engine/sim/testdata/scenarios/pending/[a-z_]+\.txtar)\)`)
	repository := filepath.Join(filepath.Dir(testdata(t)), "../..")
	b, ran := newBench(t, suspendedMessage()), map[string]bool{}
	for section := range strings.SplitSeq(page, "\n## ") {
		scenario := link.FindStringSubmatch(section)
		if scenario == nil {
			continue
		}
		for _, m := range command.FindAllStringSubmatch(section, -1) {
			if strings.HasPrefix(m[1], "celsius what-if") {
				continue
			}
			run, known := runs[m[1]]
			if !known {
				t.Errorf("docs/pending.md: no test runs %q", m[1])
				continue
			}
			ran[m[1]] = true
			b.writeScenario(filepath.Join(repository, scenario[1]))
			if out, ok := b.run(run.line); !ok || !strings.Contains(out, run.prints) {
				t.Errorf("%s: %s fails, or does not print %q:\n%s", m[1], run.line, run.prints, out)
			}
		}
	}
	for name := range runs {
		if !ran[name] {
			t.Errorf("docs/pending.md does not name %q", name)
		}
	}
}

// writeScenario writes the world and the policy of a scenario to files. For a scenario without a policy, it writes a plain policy.
func (b *bench) writeScenario(file string) {
	b.t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string][]byte{"policy": []byte("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\n" +
		"spec: {pipeline: [enqueue, allocate], tiers: [{name: t, tables: [{name: gang}, {name: proportion}, {name: predicates}]}]}\n")}
	for _, f := range archive.Files {
		out[f.Name] = f.Data
	}
	for _, name := range []string{"policy", "world"} {
		if err := os.WriteFile(name+".yaml", out[name], 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// suspendedMessage returns the remedy that the controllers write into the status of the suspended Job of remedies.txtar.
func suspendedMessage() string {
	return objects.HowToResume(&batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "paused"}})
}

// writeNow writes the world to now.yaml, with the current state of the queue in the cluster.
func (b *bench) writeNow() error {
	queue := &schedulingv1beta1.Queue{}
	if err := b.cluster.Get(b.t.Context(), client.ObjectKey{Name: "shut"}, queue); err != nil {
		return err
	}
	world, err := os.ReadFile("world.yaml")
	if err != nil {
		return err
	}
	return os.WriteFile("now.yaml", bytes.ReplaceAll(world, []byte("state: Closed"), []byte("state: "+string(queue.Status.State))), 0o600)
}

// remediedElsewhere returns the messages that TestRemedies does not print. The value is the file and the test that carry the remedy out.
// If no test does, the value is a dash and the reason.
func remediedElsewhere() map[string]string {
	const (
		kubectl    = "../playground/e2e_remedies_test.go TestE2ERemedies"
		connected  = "../playground/e2e_cli_test.go TestE2ECommandLine"
		deployed   = "../playground/e2e_deploy_test.go TestE2EDeploy"
		shadow     = "../playground/e2e_shadow_test.go TestE2EShadow"
		tryPage    = "try_test.go TestTryCommand"
		notRemedy  = "- it states what a flag means, or which value was given"
		endless    = "- the command runs until its user ends it"
		restart    = "- it is a warning in the log of a process that must be restarted"
		corpus     = "- it is for those who compare published runs, whose corpus is no part of the repository"
		controller = "../../statemachines/controller/"
	)
	noQueue := func(field string) string {
		return strings.ReplaceAll("there is no queue {{Q}}; {{nearest(Q, queues.map(q, q.metadata.name)) == '' ? 'name one of those that "+
			"`kubectl get queues` lists, or make it' : 'did you mean ' + nearest(Q, queues.map(q, q.metadata.name)) + '?'}}", "Q", field)
	}
	return map[string]string{
		"find the API server: %w; give --kubeconfig, set KUBECONFIG, or run in a pod":  deployed,
		"find the API server: %w; give --kubeconfig or --context, or set KUBECONFIG":   shadow,
		"no cluster is configured: set KUBECONFIG, give --kubeconfig, or run in a pod": connected,
		"give --policy or --conf, not both":                                            shadow,
		"no scheduler of this cluster answers: APIService %s is not there. A scheduler answers that is started with --explain-address, " +
			"as that of deploy is": deployed,
		"the scheduler does not answer just now, perhaps since another begins to lead (kubectl get apiservice %s says more): %w": deployed,
		"no scheduler of this cluster tells what it counts: start it with --explain-address, as that of deploy is%v":             deployed,
		"the change of policy %s was sent, but generation %d differs from it: another client or a webhook changed it as well; " +
			"kubectl get spol %[1]s -o yaml shows it": kubectl,
		"is empty; write the UID of the queue (kubectl get queue {{object.target.name}} -o jsonpath='{.metadata.uid}'), " +
			"so that the command is not for another queue of that name": kubectl,
		noQueue("variables.queue"): kubectl, noQueue("object.spec.queue"): kubectl,
		// The dashboard shows these next to an object.
		"kubectl describe node %v": kubectl, "kubectl describe queue.scheduling.volcano.sh %v": kubectl,
		"kubectl describe podgroup.scheduling.volcano.sh %v%v": kubectl, "kubectl get vcjob %v%v -o yaml": kubectl,
		"kubectl get events%v --field-selector involvedObject.name=%v": kubectl, "celsius job view %v%v": kubectl,
		"celsius pod list -j %v%v": kubectl, "celsius queue get %v": kubectl, "celsius top nodes": kubectl, "celsius top queues": kubectl,
		"celsius explain job %v%v": deployed, "celsius explain queue %v": deployed, "celsius explain node %v": deployed,

		"address %s: without --shared the page is served on this machine alone: say 127.0.0.1, or localhost; it shows what you may see, " +
			"and others shall not": "dashboard/server_test.go TestOptions",
		"serve the dashboard: %w; --address says where else":                   "../playground/e2e_dashboard_test.go TestE2EDashboard",
		"the key is missing: open the address that celsius dashboard printed":  "../playground/e2e_dashboard_test.go TestE2EDashboard",
		"%w; --dir says where it is":                                           tryPage,
		"%s does not hold the page: make web writes it to bin/web":             tryPage,
		"%v; celsius policy check prints all":                                  "remedied_test.go TestAllMistakesArePrinted",
		"%v; who may vouch for it is said to the scheduler, by --extender-tls": "../../engine/live/asks/trust_test.go TestTLS",
		"it cannot be verified that its creator may change the queue: %v; install deploy/guard (kubectl apply -k deploy/guard), " +
			"then create the command again": controller + "guard_test.go TestCommandOnQueueNeedsGuard",
		"only field manager %s has written it, and the server-side apply of %s would leave it in: the policy would be a mixture that neither " +
			"has written; apply the policy with --field-manager=%[1]s, replace it whole with kubectl replace -f FILE, or write what is to " +
			"stay into the file": "../playground/e2e_policy_test.go TestTwoManagersMixNoPolicy",
		"spec.flows: are %d, and a JobFlow may have %d here; make several JobFlows, or have the controllers started with a greater " +
			"--max-jobs-per-flow": controller + "jobflow_test.go TestJobFlowOutOfBounds",
		"spec.tasks: they ask for %d pods, and a job may have %d here; ask for fewer, or have the owner of the cluster raise " +
			"--max-pods-per-job of the controllers": controller + "bounds_test.go TestOutOfBounds",
		"the API server refused objects of the job %d times in a row; after %d times (--max-requeue-num of the controllers) the job is " +
			"terminated. Correct what the API server refuses. Its last answer: %s": controller + "limits_test.go TestLimitsAreAnnounced",
		"; it was refused %d times in a row, and after %d times the job is terminated (--max-requeue-num of the controllers)": controller +
			"refusal_test.go TestQuotaIsNeverFinal",
		". Scheduler %s is to serve this policy by its flag --policy: set spec.mode to Active to have it obeyed": "../../engine/live/serving/" +
			"shadows_test.go TestShadows",
		"write a word, such as port for --port":         "../../statemachines/jobplugin/load_test.go TestMistakes",
		"write the word alone, such as port for --port": "../../statemachines/jobplugin/load_test.go TestMistakes",

		"WARNING: Volcano's scheduler is alive, and this one serves the name volcano too; both would place the same pods. Stop it, or start " +
			"this one with --scheduler-name celsius alone": restart,
		"the policy reads the measured load of nodes, but this cluster has no API metrics.k8s.io: no load is known; is metrics-server " +
			"installed? Or give --prometheus-url": restart,
		"questions about cycles (celsius explain) cannot be taken; it is tried again": restart,
		"celsius simulate --obey-sim-annotations applies it":                          "tenant_test.go TestSimAnnotationsOfACluster",
		"kubectl celsius": notRemedy,
		"%.1f %% is covered, less than the %g %% of --min-coverage":                                     notRemedy,
		"left out by --anonymize, as they name namespaces, Jobs and Queues":                             notRemedy,
		"scheduler %s serves policy %q, which its flag --policy names":                                  notRemedy,
		"--period and --grace must be above 0":                                                          notRemedy,
		"Numbers that the flag --limit of celsius webhook sets.":                                        notRemedy,
		"--watch prints what changes; have the report as %s written to a file: add --to":                endless,
		"%s: --verify wants the annotation %s on policy %s, such as 05-BestFit":                         corpus,
		"--svg draws one list of pods: name it with --workload, such as %s, and at most one --mix":      corpus,
		"without --policy, %s is wanted, and it is not there: run this in a checkout, or name a policy": corpus,
	}
}
