package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

// now is the time at which all commands run.
func now() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) }

// TestCommands runs the commands of each file of testdata in order, on the objects of world.yaml. It compares their output with the file.
// "$ asked" lists the created Commands. "$ jobs" prints the specs of the Jobs that the commands of the file created.
func TestCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	files, err := filepath.Glob("testdata/*.console")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".console"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			var got strings.Builder
			for _, block := range strings.Split(string(text), "$ ")[1:] {
				line, _, _ := strings.Cut(block, "\n")
				fmt.Fprintf(&got, "$ %s\n%s\n", line, w.run(line))
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(text), got.String()); diff != "" {
				t.Errorf("what is printed (-want +got; -update writes it):\n%s", diff)
			}
		})
	}
}

// world is a cluster of objects in memory.
type world struct {
	t      *testing.T
	client client.WithWatch
	before map[string]bool // Jobs that exist at the start
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), data)
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		objects = append(objects, o.(client.Object))
	}
	about := func(o client.Object) []string {
		if e, ok := o.(*corev1.Event); ok {
			return []string{e.InvolvedObject.Name}
		}
		return nil
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&corev1.Event{}, eventsOf, about)
	w := &world{t, b.Build(), map[string]bool{}}
	for _, job := range w.jobs() {
		w.before[job.Name] = true
	}
	return w
}

func (w *world) jobs() []batchv1alpha1.Job {
	w.t.Helper()
	list := &batchv1alpha1.JobList{}
	if err := w.client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// run runs a command. It returns the output, and the exit code if that is not 0.
func (w *world) run(line string) string {
	w.t.Helper()
	switch line {
	case "asked":
		return w.asked()
	case "jobs":
		return w.made()
	}
	words, err := wordsOfShell(line)
	if err != nil {
		w.t.Fatal(err)
	}
	root := w.program(words[0])
	var out bytes.Buffer
	root.SetArgs(words[1:])
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetContext(w.t.Context())
	code := 0
	if words[0] != "celsius" {
		code = Execute(root)
	} else if err := root.Execute(); err != nil {
		fmt.Fprintf(&out, "celsius: %s\n", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintf(&out, "[exit code %d]\n", code)
	}
	return out.String()
}

// raw answers questions about cycles in the same way as a scheduler.
func (w *world) raw(_ context.Context, path, accept string, body []byte) ([]byte, error) {
	answers := map[string]string{
		"/apis/explain.celsius.dev/v1alpha1/namespaces/team/jobs/train text/plain": "job team/train\n  queue  research, place 1 in its order\n",
		"/apis/explain.celsius.dev/v1alpha1/queues/research application/json": `{"kind":"Explanation","explanation":{"kind":"queue",` +
			`"name":"research","text":"queue research\n  no job waits in it\n"}}`,
	}
	if strings.HasSuffix(path, "whatifs") { // the answer contains the question
		return fmt.Appendf(nil, "%s is asked:\n%s\n", path, body), nil
	}
	if text, ok := answers[path+" "+accept]; ok {
		return []byte(text), nil
	}
	if strings.HasSuffix(path, "/nodes/n9") {
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, false)
	}
	err := apierrors.NewNotFound(schema.GroupResource{Group: "explain.celsius.dev", Resource: "pods"}, "trian-0")
	err.ErrStatus.Message = "the last cycle knew none: there is no pod team/trian-0; did you mean team/train-0?"
	return nil, err
}

func (w *world) program(name string) *cobra.Command {
	o := Options{
		Connect: func(*genericclioptions.ConfigFlags) (*Reach, error) {
			return &Reach{WithWatch: w.client, Table: podTable, Raw: w.raw}, nil
		},
		Now: now, Patience: time.Millisecond,
		Env: func(name string) string {
			return map[string]string{"VOLCANO_DEFAULT_JOB_NAMESPACE": "team"}[name]
		},
	}
	if name != "celsius" {
		return New(name, o)
	}
	root := &cobra.Command{Use: "celsius", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands(o)...)
	policy := &cobra.Command{Use: "policy"}
	policy.AddCommand(PolicyCommands(o)...)
	root.AddCommand(policy)
	return root
}

// podTable returns the table of pods that the API server makes.
func podTable(_ context.Context, namespace string, of metav1.ListOptions) (*metav1.Table, error) {
	selector, err := labels.Parse(of.LabelSelector)
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	for _, name := range []string{"Name", "Ready", "Status", "Restarts", "Age", "IP"} {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name})
	}
	for _, p := range []struct {
		namespace, name, status string
		labels, annotations     map[string]string
	}{
		{
			"team", "train-worker-1", "Pending",
			map[string]string{batchv1alpha1.JobNameKey: "train", batchv1alpha1.QueueNameKey: "research"},
			nil,
		},
		{
			"team", "train-worker-0", "Running",
			map[string]string{batchv1alpha1.JobNameKey: "train", batchv1alpha1.QueueNameKey: "research"},
			nil,
		},
		{"default", "etl-default-0", "Running", map[string]string{batchv1alpha1.JobNameKey: "etl"}, nil},
		{"team", "notebook", "Running", nil, map[string]string{schedulingv1beta1.QueueNameAnnotationKey: "research"}},
		{"team", "web", "Running", nil, nil},
	} {
		if namespace != "" && p.namespace != namespace || !selector.Matches(labels.Set(p.labels)) {
			continue
		}
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: p.name, Labels: p.labels, Annotations: p.annotations,
		}}
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells: []any{p.name, "1/1", p.status, 0, "3m", "10.0.0.1"}, Object: runtime.RawExtension{Raw: raw},
		})
	}
	return table, nil
}

// asked lists the Commands that exist.
func (w *world) asked() string {
	list := &busv1alpha1.CommandList{}
	if err := w.client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var out strings.Builder
	for i := range list.Items {
		c := &list.Items[i]
		if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].Name != c.TargetObject.Name ||
			!strings.HasPrefix(c.Name, c.TargetObject.Name+"-"+strings.ToLower(c.Action)+"-") {
			w.t.Errorf("Command %s does not belong to its target, %+v", c.Name, c.TargetObject)
		}
		fmt.Fprintf(&out, "%s %s %s in %s\n", c.Action, c.TargetObject.Kind, c.TargetObject.Name, c.Namespace)
	}
	return out.String()
}

// made prints the specs of the Jobs that were created.
func (w *world) made() string {
	var out strings.Builder
	for _, job := range w.jobs() {
		if w.before[job.Name] {
			continue
		}
		text, err := yaml.Marshal(job.Spec)
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s in %s\n%s", job.Name, job.Namespace, text)
	}
	return out.String()
}

// TestPaint checks that only terminals get colors, and that colors do not change the column widths.
func TestPaint(t *testing.T) {
	var plain, painted bytes.Buffer
	rows := [][]string{{"NAME", "PHASE", "AGE"}, {"a", "Running", "1m"}}
	newGrid(&plain, func(string) string { return "" }).print(rows)
	if want := "NAME   PHASE     AGE\na      Running   1m\n"; plain.String() != want {
		t.Errorf("into a file: %q, want %q", plain.String(), want)
	}
	(&grid{out: &painted, paint: true}).print(rows)
	if want := "NAME   PHASE     AGE\na      \x1b[32mRunning\x1b[0m   1m\n"; painted.String() != want {
		t.Errorf("on a terminal: %q, want %q", painted.String(), want)
	}
}

// TestWatch checks that a list continues with changed objects, and ends when the user stops it.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &signalled{wrote: make(chan string, 10)}
	root := w.program("celsius")
	root.SetArgs([]string{"job", "list", "-n", "team", "-w"})
	root.SetOut(out)
	done := make(chan error)
	go func() { done <- root.ExecuteContext(ctx) }()
	if first := <-out.wrote; !strings.HasPrefix(first, "NAME") {
		t.Errorf("first it writes %q", first)
	}
	<-out.wrote // the Job
	job := &batchv1alpha1.Job{}
	job.Namespace, job.Name = "team", "new"
	var line string
	for tries := 0; line == "" && tries < 50; tries++ { // the watch of the client in memory does not see earlier changes
		job.ResourceVersion, job.Name = "", fmt.Sprint("new-", tries)
		if err := w.client.Create(ctx, job); err != nil {
			t.Fatal(err)
		}
		select {
		case line = <-out.wrote:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !strings.HasPrefix(line, "new-") {
		t.Errorf("then it writes %q", line)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// signalled sends each write to a channel.
type signalled struct{ wrote chan string }

func (s *signalled) Write(p []byte) (int, error) {
	s.wrote <- string(p)
	return len(p), nil
}

// TestWordsOfShell checks the words of a command.
func TestWordsOfShell(t *testing.T) {
	for command, want := range map[string][]string{
		"":                                nil,
		"  a  b ":                         {"a", "b"},
		`echo "a b" 'c $d' e\ f`:          {"echo", "a b", "c $d", "e f"},
		`python x.py --n=$RANK "$HOME/a"`: {"python", "x.py", "--n=$RANK", "$HOME/a"},
		`sh -c 'a; b | c'`:                {"sh", "-c", "a; b | c"},
		`"a\"b\c" ''`:                     {`a"b\c`, ""},
		"~/x *.py ${A:-b} $(date)":        {"~/x", "*.py", "${A:-b}", "$(date)"},
	} {
		got, err := wordsOfShell(command)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %q, %v; want %q", command, got, err, want)
		}
	}
	for _, command := range []string{"a; b", "a | b", "'open", `"open`, "a &"} {
		if got, err := wordsOfShell(command); err == nil {
			t.Errorf("%s: %q, want an error", command, got)
		}
	}
}

// FuzzWordsOfShell checks that no command makes wordsOfShell panic. If its result is quoted and split again, the words are the same.
func FuzzWordsOfShell(f *testing.F) {
	f.Add(`a "b c" 'd' e\ f $g`)
	f.Fuzz(func(t *testing.T, command string) {
		words, err := wordsOfShell(command)
		if err != nil {
			return
		}
		for _, word := range words {
			if strings.ContainsAny(word, "'\x00") {
				continue
			}
			again, err := wordsOfShell("'" + word + "'")
			if err != nil || len(again) != 1 || again[0] != strings.ReplaceAll(word, "\r", "") && again[0] != word {
				t.Errorf("%q: %q is read again as %q, %v", command, word, again, err)
			}
		}
	})
}
