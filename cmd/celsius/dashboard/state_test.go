package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// drawn returns the picture of a state, and its sections by name.
func drawn(t testing.TB, s *state, before *picture, now time.Time) (*picture, map[string]json.RawMessage) {
	t.Helper()
	p := s.draw(before, overview{Cluster: "test"}, now)
	if p == nil {
		t.Fatal("nothing is drawn")
	}
	out := map[string]json.RawMessage{}
	for _, part := range p.parts {
		out[part.name] = part.data
	}
	return p, out
}

func section[T any](t testing.TB, from map[string]json.RawMessage, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(from[name], &v); err != nil {
		t.Fatalf("section %s: %v", name, err)
	}
	return v
}

// TestPicture checks each section of a small cluster.
func TestPicture(t *testing.T) {
	_, sections := drawn(t, aCluster(t), &picture{}, noon())
	top := section[overview](t, sections, "overview")
	if diff := cmp.Diff(overview{
		Cluster: "test", Gaps: []Gap{}, Resources: []string{"cpu", "memory", "pods", "nvidia.com/gpu"}, Used: []float64{30, 0, 3, 8},
		Offered: []float64{64, 384 << 30, 330, 8}, Nodes: 4, NotReady: 1, Cordoned: 1,
		Pods: map[string]int{"Running": 3, "Waiting": 2, "Failed": 1},
		Jobs: map[string]int{"Running": 1, "Inqueue": 1, "Pending": 1, "Completed": 1},
	}, top, cmp.AllowUnexported(Gap{})); diff != "" {
		t.Errorf("overview: -want +got\n%s", diff)
	}
	queues := section[queuesView](t, sections, "queues")
	var tree []string
	for _, q := range queues.Queues {
		tree = append(tree, fmt.Sprintf("%s/%s %v %v %d", q.Parent, q.Name, q.Allocated, q.Deserved, q.Waiting))
	}
	if diff := cmp.Diff([]string{
		"/root [30 0 0 0] [-1 -1 -1 -1] 0", "root/batch [2 0 0 0] [40 -1 -1 -1] 1",
		"root/research [28 0 0 8] [24 -1 -1 6] 1", "research/vision [8 0 0 0] [-1 -1 -1 -1] 0",
	}, tree); diff != "" {
		t.Errorf("queues; what the scheduler counts goes before what the spec says: -want +got\n%s", diff)
	}
	line := section[lineView](t, sections, "line")
	if line.Total != 2 || line.Jobs[0].Name != "sweep" || line.Jobs[1].Name != "big" || line.Jobs[0].Pods != 2 || line.Jobs[0].Placed != 0 {
		t.Errorf("the line is %+v", line)
	}
	if why := line.Jobs[1].Why; why != "it is not admitted to its queue yet" {
		t.Errorf("a job that nobody said anything of waits since %q", why)
	}
	if !strings.HasPrefix(line.Reasons[0].Why, "# tasks in gang unschedulable: # nodes are available: # Insufficient cpu.") {
		t.Errorf("reasons are %+v", line.Reasons)
	}
}

// TestPolicies checks a policy and the counts of a row.
func TestPolicies(t *testing.T) {
	_, sections := drawn(t, aCluster(t), &picture{}, noon())
	policies := section[[]policyView](t, sections, "policies")
	if len(policies) != 1 || !policies[0].Active || !policies[0].Serves || policies[0].Generation != 3 {
		t.Fatalf("policies are %+v", policies)
	}
	at := slices.IndexFunc(policies[0].Rows, func(r rowView) bool { return r.Name == "no-night" })
	row := policies[0].Rows[at]
	if row.Cost <= 0 {
		t.Errorf("a row costs %v", row.Cost)
	}
	row.Cost = 0
	if diff := cmp.Diff(rowView{
		Site: "predicates", Table: "house", Name: "no-night", Text: "task.request['cpu'] <= 64.0", Waits: 3, Evictions: 4, Evaluations: 1200,
		Errors:    9,
		LastError: "team/train-1: no such key",
	}, row); diff != "" {
		t.Errorf("a row: -want +got\n%s", diff)
	}
}

// TestPoliciesOfQueues checks a policy for some queues. The scheduler counts its rows under the name of the policy, and only while it
// follows this policy.
func TestPoliciesOfQueues(t *testing.T) {
	s := aCluster(t)
	part := aPolicy(t)
	part.SetName("team-a")
	if err := unstructured.SetNestedField(part.Object, "queue.name == 'batch'", "spec", "queues"); err != nil {
		t.Fatal(err)
	}
	fill(t, s, part)
	f, err := read([]byte(aPage+`celsius_waiting_jobs{queue="batch",rule="no-night",table="team-a:house"} 5
`), &figures{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.figures = f
	waits := func() (out []int) {
		s.changed = true
		_, sections := drawn(t, s, &picture{}, noon())
		for _, p := range section[[]policyView](t, sections, "policies") {
			at := slices.IndexFunc(p.Rows, func(r rowView) bool { return r.Name == "no-night" })
			out = append(out, p.Rows[at].Waits)
		}
		return out
	}
	if got := waits(); !slices.Equal(got, []int{3, 5}) {
		t.Errorf("for the row of either policy wait %v", got)
	}
	conditions, _, _ := unstructured.NestedSlice(part.Object, "status", "conditions")
	conditions[0].(map[string]any)["status"] = "False" //nolint:forcetypeassert // a test fails by it
	if err := unstructured.SetNestedSlice(part.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	fill(t, s, part)
	if got := waits(); !slices.Equal(got, []int{3, 0}) {
		t.Errorf("of a policy that is not obeyed is counted %v", got)
	}
}

// TestHeat checks the values of each node.
func TestHeat(t *testing.T) {
	p, _ := drawn(t, aCluster(t), &picture{}, noon())
	want := map[string][]byte{
		"cpu-1": {13, 0, 1, notOffered, flagReady}, "cpu-2": {0, 0, 0, notOffered, flagReady | flagCordon},
		"cpu-3": {0, 0, 0, notOffered, 0}, "gpu-1": {88, 0, 2, 100, flagReady},
	}
	for i, name := range p.heat.names {
		var got []byte
		for _, column := range p.heat.columns {
			got = append(got, column[i])
		}
		if !bytes.Equal(got, want[name]) {
			t.Errorf("node %s: %v, want %v", name, got, want[name])
		}
	}
}

// TestOnlyWhatChanged checks that a page receives a section again only if the section changed. Of the nodes, it receives only the changed
// cells.
func TestOnlyWhatChanged(t *testing.T) {
	s := many(t, 100, 100)
	first, _ := drawn(t, s, &picture{}, noon())
	var has sent
	all, err := has.append(nil, first)
	if err != nil || bytes.Count(all, []byte("event: ")) != 5 {
		t.Fatalf("at first all is sent: %v\n%s", err, all)
	}
	if s.draw(first, overview{}, noon().Add(time.Second)) != nil {
		t.Error("a picture is drawn of nothing new")
	}
	p := manyPod(4, 0, 100, true) // this pod waited before
	fill(t, s, p)
	second, _ := drawn(t, s, first, noon().Add(time.Second))
	text, err := has.append(nil, second)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if diff := cmp.Diff([]string{"overview", "line", "nodes"}, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(string(text), `"at":[80],"cells":`) || strings.Contains(string(text), `"names"`) {
		t.Errorf("of the nodes is sent more than one cell: %s", text)
	}
	if text, err = has.append(nil, second); err != nil || len(text) > 0 {
		t.Errorf("the same is sent twice: %v %s", err, text)
	}
	s.drop(toolscache.DeletedFinalStateUnknown{Obj: s.nodes[first.heat.names[0]]})
	third, _ := drawn(t, s, second, noon().Add(2*time.Second))
	if text, err = has.append(nil, third); err != nil || !strings.Contains(string(text), `"names":[`) {
		t.Errorf("that a node is gone is not sent: %v", err)
	}
}

// TestStory checks the story of a failed job, with its pods and events. It also checks a job whose events may not be read.
func TestStory(t *testing.T) {
	s := aCluster(t)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(noon().Add(-ago)) }
	c := asked{events: map[string][]corev1.Event{
		"team/etl-1": {{
			ObjectMeta: metav1.ObjectMeta{UID: "1"}, Reason: "BackOff", Message: hostile, Count: 3, Type: corev1.EventTypeWarning,
			LastTimestamp:  at(30 * time.Second),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "etl-1"},
		}},
		"team/etl": {{ObjectMeta: metav1.ObjectMeta{UID: "1"}, LastTimestamp: at(30 * time.Second)}},
	}}
	v, asks, ok := s.story("team", "etl")
	if !ok {
		t.Fatal("there is no story")
	}
	v.tell(newEvents(c).of(t.Context(), "team", asks))
	var told []string
	for _, e := range v.Entries {
		told = append(told, fmt.Sprintf("%s %s: %s", e.At.Sub(noon()), e.What, e.Says))
	}
	if diff := cmp.Diff([]string{
		"-1h0m0s PodGroup made: queue batch, 2 must start together", "-1h0m0s Job made: ", "-1h0m0s Job Pending: ", "-1h0m0s 2 of 2 pods made: ",
		"-30m0s Job Failed: ", "-30m0s 2 of 2 pods bound: ", "-20m0s 2 of 2 pods started: ",
		"-1m0s 1 of 2 pods ended: ", "-1m0s pod etl-1 failed: main exited with 137 OOMKilled", "-30s event  of  : ",
	}, told); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if v.Pods[0].Name != "etl-1" || v.Counts["Failed"] != 1 || v.Total != 2 || len(v.Lacks) != 0 {
		t.Errorf("pods: %+v", v)
	}
	if !slices.Contains(v.Commands, "celsius explain job etl -n team") {
		t.Errorf("commands: %q", v.Commands)
	}
	v, asks, _ = s.story("team", "sweep-0f3a") // by the name of its PodGroup
	v.tell(newEvents(asked{}).of(t.Context(), "team", asks))
	if v.Job.Name != "sweep" || len(v.Lacks) != 1 || !strings.Contains(v.Lacks[0], "you may not list events in namespace team") {
		t.Errorf("who may not list events is told %q of %s", v.Lacks, v.Job.Name)
	}
	if _, _, ok := s.story("team", "none"); ok {
		t.Error("there is a story of a job that is not there")
	}
}

// TestHistory checks that the history keeps one hour, and only of queues that exist.
func TestHistory(t *testing.T) {
	s := aCluster(t)
	p := &picture{}
	for i := range mostSamples + 50 {
		p, _ = drawn(t, s, p, noon().Add(time.Duration(i)*sampleEvery))
	}
	d, ok := s.queueDetail("research")
	if !ok || len(d.Times) != mostSamples || len(d.Allocated[0]) != mostSamples || d.Allocated[0][0] != 28 ||
		d.Deserved[0][mostSamples-1] != 24 {
		t.Fatalf("%d moments", len(d.Times))
	}
	if got, want := d.Times[mostSamples-1], noon().Add((mostSamples+49)*sampleEvery).Unix(); got != want {
		t.Errorf("the newest is %d, want %d", got, want)
	}
	if d.Line.Total != 1 || d.Line.Jobs[0].Name != "sweep" {
		t.Errorf("who waits in the queue: %+v", d.Line)
	}
	s.drop(s.queues["research"])
	drawn(t, s, p, noon().Add(2*time.Hour))
	if s.history.queues["research"] != nil {
		t.Error("a queue that is gone is remembered")
	}
}

// TestCircle checks queues that are parents of each other. They are shown, and one of them is the top. Queues whose parent does not exist
// are also shown.
func TestCircle(t *testing.T) {
	s := newState()
	fill(t, s, aQueue("b", "c", "", ""), aQueue("c", "b", "", ""), aQueue("a-leaf", "b", "", ""), aQueue("own", "own", "", ""),
		aQueue("alone", "gone", "", ""))
	_, sections := drawn(t, s, &picture{}, noon())
	var got []string
	for _, q := range section[queuesView](t, sections, "queues").Queues {
		got = append(got, q.Parent+"/"+q.Name)
	}
	if diff := cmp.Diff([]string{"/alone", "/own", "/b", "b/a-leaf", "b/c"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestTaken checks that only the pods on nodes that offer resources count as use of the cluster. So a broken node never makes the use
// larger than the total.
func TestTaken(t *testing.T) {
	s := newState()
	broken := aNode("n2", "cpu=16,pods=110")
	broken.Status.Conditions[0].Status = corev1.ConditionFalse
	fill(t, s, aNode("n1", "cpu=16,pods=110"), broken, aPod("a", "a", "n1", "cpu=16", corev1.PodRunning, time.Hour),
		aPod("b", "b", "n2", "cpu=16", corev1.PodRunning, time.Hour))
	_, sections := drawn(t, s, &picture{}, noon())
	if top := section[overview](t, sections, "overview"); top.Used[0] != 16 || top.Offered[0] != 16 {
		t.Errorf("%v of %v are taken", top.Used, top.Offered)
	}
}

// TestOneNamespace checks the note for the case that only the pods of one namespace are read. It states that the use of nodes covers only
// these pods.
func TestOneNamespace(t *testing.T) {
	p := aCluster(t).draw(&picture{}, overview{Namespace: "team"}, noon())
	var top overview
	if err := json.Unmarshal(p.parts[0].data, &top); err != nil {
		t.Fatal(err)
	}
	if len(top.Gaps) != 1 || !strings.Contains(top.Gaps[0].Why, "are those of namespace team alone") {
		t.Errorf("gaps are %+v", top.Gaps)
	}
}

// TestCommands checks that the owner name of an object never gets into a command that a viewer copies into a shell.
func TestCommands(t *testing.T) {
	s := newState()
	for _, owner := range []string{"x; touch pwned #", "$(touch pwned)", "-rf", "a b", "Ä", "x'y", ""} {
		g := aGroup("team", "train", "batch", schedulingv1beta1.PodGroupRunning, "", time.Hour)
		g.OwnerReferences[0].Name = owner
		fill(t, s, g)
		v, _, ok := s.story("team", "train-0f3a")
		if !ok || v.Job.Name != "train-0f3a" || !slices.Contains(v.Commands, "celsius explain job train-0f3a -n team") {
			t.Errorf("by owner %q the job is called %q, and its commands are %q", owner, v.Job.Name, v.Commands)
		}
	}
	for name, want := range map[string]string{"a.b-1": "a.b-1", "x; rm": "'x; rm'", "it's": `'it'\''s'`, "a;b": "'a;b'"} {
		if got := word(name); got != want {
			t.Errorf("%q is written as %s, want %s", name, got, want)
		}
	}
}

// TestSearch checks that the search finds parts of names, with the best result first. It returns at most as many results as a page shows.
func TestSearch(t *testing.T) {
	s := aCluster(t)
	var got []string
	for _, f := range s.search("TRAIN").Found {
		got = append(got, f.Kind+" "+f.full()+" "+f.Job)
	}
	if diff := cmp.Diff([]string{"job team/train ", "pod team/train-0 train", "pod team/train-1 train"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := s.search(" "); got.Total != 0 {
		t.Errorf("nothing finds %+v", got)
	}
	if got := many(t, 10, 5000).search("team/job"); len(got.Found) != mostFound || got.Total != 5500 {
		t.Errorf("%d are shown of %d", len(got.Found), got.Total)
	}
}

// TestNodeDetail checks the pods of a node, and the reason why a node is not ready.
func TestNodeDetail(t *testing.T) {
	s := aCluster(t)
	s.show()
	d, _ := s.nodeDetail("gpu-1")
	if d.Total != 2 || d.Used[0] != 28 || d.Used[3] != 8 || d.Offers[3] != 8 || d.Pods[0].Job != "train" {
		t.Errorf("%+v", d)
	}
	if d, _ = s.nodeDetail("cpu-3"); d.Ready || !strings.HasPrefix(d.Why, "kubelet stopped") {
		t.Errorf("%+v", d)
	}
	if d, _ = s.nodeDetail("cpu-2"); !d.Cordoned || len(d.Taints) != 1 {
		t.Errorf("%+v", d)
	}
	if _, ok := s.nodeDetail("none"); ok {
		t.Error("there is a node that is not there")
	}
}

// TestFigures checks the rates between two moments, and how long jobs waited for a row. Text that is not a metrics page is refused.
func TestFigures(t *testing.T) {
	first, err := read([]byte(aPage), &figures{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	second, err := read([]byte(strings.Replace(aPage, " 1200", " 1500", 1)), first, noon().Add(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if got := second.of(row{"predicates", "house", "no-night"}); got.rate != 30 || got.waited != 30*time.Second || got.waits != 3 {
		t.Errorf("%+v", got)
	}
	third, err := read([]byte(strings.Replace(aPage, " 1200", " 5", 1)), second, noon().Add(20*time.Second)) // now another scheduler leads
	if got := third.of(row{"predicates", "house", "no-night"}); err != nil || got.rate != 0 || got.waited != time.Minute {
		t.Errorf("%v %+v", err, got)
	}
	if _, err := read([]byte("<html>"), first, noon()); err == nil {
		t.Error("a page that is no metrics is read")
	}
}

// TestGaps checks that the state names the missing right, and removes a gap that is not reported again.
func TestGaps(t *testing.T) {
	s := newState()
	w := &watcher{state: s}
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	for _, x := range []struct {
		namespace string
		kind      followed
		err       error
		want      string
	}{
		{
			"",
			followed{kindPods, nil, true},
			no,
			"you may not list and watch pods in all namespaces: ask for a role that lets you, or start with -n NAMESPACE",
		},
		{"team", followed{kindPods, nil, true}, no, "you may not list and watch pods in namespace team: ask for a role that lets you"},
		{"team", followed{kindNodes, nil, false}, no, "you may not list and watch nodes in the cluster"},
		{
			"",
			followed{kindQueues, nil, false},
			apierrors.NewNotFound(schema.GroupResource{}, ""),
			"are Celsius' CustomResourceDefinitions applied?",
		},
		{"", followed{kindPods, nil, true}, apierrors.NewResourceExpired("old"), ""},
		{"", followed{kindPods, nil, true}, errors.New("connection refused"), "they cannot be read: connection refused"},
	} {
		w.namespace = x.namespace
		if got := w.lacks(x.kind, x.err); !strings.Contains(got, x.want) || (got == "") != (x.want == "") {
			t.Errorf("%s: %q, want %q", x.kind.kind, got, x.want)
		}
	}
	s.lack(kindPods, "no", noon())
	if got := s.lacking(noon().Add(time.Minute)); len(got) != 1 || got[0].Of != kindPods {
		t.Errorf("%+v", got)
	}
	if got := s.lacking(noon().Add(3 * time.Minute)); len(got) != 0 {
		t.Errorf("an old gap is told: %+v", got)
	}
}

// TestCounts asks a scheduler for its counts. If it does not answer, the former counts stay.
func TestCounts(t *testing.T) {
	s := newState()
	s.countOnce(t.Context(), asked{raw: map[string]string{"/apis/explain.celsius.dev/v1alpha1/metrics/scheduler": aPage}})
	if s.figures.serves != "default" || len(s.lacking(time.Now())) != 0 {
		t.Errorf("%+v", s.figures)
	}
	s.countOnce(t.Context(), asked{})
	if got := s.lacking(time.Now()); s.figures.serves != "default" || len(got) != 1 || !strings.Contains(got[0].Why, "--explain-address") {
		t.Errorf("%+v", got)
	}
}

// TestLongTexts checks that a text from an object is cut, between two characters.
func TestLongTexts(t *testing.T) {
	if got := short(strings.Repeat("ä", mostText)); len(got) > mostText+3 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes", len(got))
	}
}

// BenchmarkPicture measures an update of 10,000 nodes and 50,000 pods after 500 pods changed.
func BenchmarkPicture(b *testing.B) {
	s := many(b, 10000, 50000)
	p, _ := drawn(b, s, &picture{}, noon())
	var has sent
	text, err := has.append(nil, p)
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for i := 0; b.Loop(); i++ {
		for j := range 50 {
			for n := range 10 {
				o := manyPod(j, n, 10000, i%2 == 0)
				stripped, _ := s.strip(o)
				s.put(stripped)
			}
		}
		p, _ = drawn(b, s, p, noon().Add(time.Duration(i)*time.Second))
		if text, err = has.append(text[:0], p); err != nil {
			b.Fatal(err)
		}
		sum += len(text)
	}
	b.ReportMetric(float64(sum)/float64(b.N), "bytes/update")
}

// TestManyFits limits the data that is sent for a large cluster, at the start and in an update. Pods are never sent, and each node takes a
// few bytes.
func TestManyFits(t *testing.T) {
	const nodes, pods = 10000, 50000
	s := many(t, nodes, pods)
	p, _ := drawn(t, s, &picture{}, noon())
	var has sent
	first, err := has.append(nil, p)
	if err != nil || len(first) > nodes*60 {
		t.Errorf("%v: at first %d bytes are sent", err, len(first))
	}
	for j := range 50 {
		for n := range 10 {
			fill(t, s, manyPod(j, n, nodes, false))
		}
	}
	p, _ = drawn(t, s, p, noon().Add(time.Second))
	update, err := has.append(nil, p)
	if err != nil || len(update) > 100<<10 || !bytes.Contains(update, []byte(`"at":[`)) {
		t.Errorf("%v: an update of 500 pods is %d bytes", err, len(update))
	}
	t.Logf("at first %d bytes are sent, and %d in an update", len(first), len(update))
	again := func() { s.changed = true; s.draw(p, overview{}, noon().Add(2*time.Second)) }
	if got := int(testing.AllocsPerRun(1, again)); got > 2*nodes+2*pods {
		t.Errorf("a picture takes %d allocations", got)
	}
}

// TestJobsWithoutPodGroup checks Jobs that wait for the controllers, for a queue or for a scheduler. They are shown in their queue, with
// the cause.
func TestJobsWithoutPodGroup(t *testing.T) {
	s := newState()
	job := func(name, queue string, phase batchv1alpha1.JobPhase, message string, ago time.Duration) *batchv1alpha1.Job {
		j := aJob("nlp", name, queue, phase, ago)
		j.Status.State.Message = message
		return j
	}
	const none = "no scheduler runs: Lease celsius-system/celsius-scheduler was last renewed at 2026-11-27T09:00:00Z"
	misspelt := job("gpt-neo", "research", "", "", 2*time.Hour)
	misspelt.Spec.SchedulerName = "celsiu"
	fill(t, s,
		aQueue("research", "", "", ""), aQueue("batch", "", "", ""),
		job("bert-large", "research", "", "", time.Hour),
		job("resnet-50", "vision-gpu", batchv1alpha1.Pending, "there is no queue vision-gpu; create it", 30*time.Minute),
		job("etl-nightly", "batch", batchv1alpha1.Pending, none, 20*time.Minute),
		aGroup("nlp", "etl-nightly", "batch", schedulingv1beta1.PodGroupPending, "", 20*time.Minute),
		misspelt,
		job("ended", "batch", batchv1alpha1.Failed, "refused", 10*time.Minute),
	)
	_, sections := drawn(t, s, &picture{}, noon())
	line := section[lineView](t, sections, "line")
	var got []string
	for _, j := range line.Jobs {
		got = append(got, j.Name+" in "+j.Queue+": "+j.Why)
	}
	if diff := cmp.Diff([]string{
		"bert-large in research: no controllers have written to the Job since it was created; see its events",
		"resnet-50 in vision-gpu: there is no queue vision-gpu; create it",
		"etl-nightly in batch: " + none,
	}, got); diff != "" {
		t.Errorf("the jobs that wait: -want +got\n%s", diff)
	}
	if n := s.line(s.sum(), "research").Total; n != 1 {
		t.Errorf("%d jobs wait in research, want 1", n)
	}
	if v, _, _ := s.story("nlp", "gpt-neo"); !strings.Contains(v.Job.Why, `spec.schedulerName is "celsiu"`) {
		t.Errorf("a Job of another scheduler: %q", v.Job.Why)
	}
	v, _, ok := s.story("nlp", "resnet-50")
	if !ok || v.Job.Why != "there is no queue vision-gpu; create it" {
		t.Errorf("its own page says %q", v.Job.Why)
	}
}
