package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// jobOfTasks returns a Job with n tasks. more is added to each task. In more, THIS stands for the number of the task and NEXT for the
// number of the next task. The task after the last one is the first one.
func jobOfTasks(t testing.TB, n int, more string) map[string]any {
	t.Helper()
	var tasks strings.Builder
	for i := range n {
		fmt.Fprintf(&tasks, "  - {name: t%d, replicas: 1, template: {spec: {containers: [{name: main, image: main}]}}%s}\n", i,
			strings.NewReplacer("THIS", fmt.Sprint(i), "NEXT", fmt.Sprint((i+1)%n)).Replace(more))
	}
	return merged(t, "spec:\n  minAvailable: 1\n  tasks:\n"+tasks.String())
}

// hostile returns objects that would keep the webhook busy, and a part of the answer to each.
func hostile(t testing.TB) map[string]struct{ body, want string } {
	t.Helper()
	manyLabels := map[string]string{}
	for i := range 10_000 {
		manyLabels[fmt.Sprintf("label-%06d-%s", i, strings.Repeat("k", 40))] = strings.Repeat("v", 60)
	}
	labelled := merged(t, "{}")
	labelled["metadata"].(map[string]any)["labels"] = manyLabels
	labelled["spec"].(map[string]any)["queue"] = "nowhere" // the API server refuses such labels; the webhook must report this mistake
	amount := jobOfTasks(t, 1, "")
	container := amount["spec"].(map[string]any)["tasks"].([]any)[0].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	container["containers"].([]any)[0].(map[string]any)["resources"] = map[string]any{"requests": map[string]any{"cpu": "1e300"}}
	return map[string]struct{ body, want string }{
		"a megabyte of labels":     {string(review(t, "CREATE", labelled)), "there is no queue nowhere"},
		"ten thousand tasks":       {string(review(t, "CREATE", jobOfTasks(t, 10_000, ""))), "spec.tasks"},
		"a cycle of five thousand": {string(review(t, "CREATE", jobOfTasks(t, 5_000, ", dependsOn: {name: [tNEXT]}"))), "spec.tasks"},
		"a task that waits for five thousand": {
			string(review(t, "CREATE", jobOfTasks(t, 1, ", dependsOn: {name: ["+strings.Repeat("t0, ", 5_000)+"t0]}"))), "dependsOn.name: are 5001",
		},
		"a million empty tolerations":   {emptyTolerations(1, 950_000), "tolerations: the object has more than 8000 lists and objects"},
		"ten thousand tolerations":      {emptyTolerations(1, 10_000), "tolerations"},
		"tasks with many tolerations":   {emptyTolerations(10, 1_080), "tolerations"},
		"tasks with more tolerations":   {emptyTolerations(1000, 900), "lists and objects"},
		"more bytes than an object has": {strings.Replace(emptyTolerations(1, 1), "x", strings.Repeat("x", 4<<20), 1), "the object has"},
		"a list in a list in a list": {strings.Replace(
			emptyTolerations(1, 1), "{}", strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20), 1), ""},
		"an amount of 1e300": {string(review(t, "CREATE", amount)), "resources"},
		"bytes that are no characters": {
			strings.Replace(string(review(t, "CREATE", merged(t, "spec: {queue: x}"))), `"x"`, "\"\xff\xfe\"", 1), "",
		},
	}
}

// emptyTolerations returns a review of a Job with this number of tasks, each with this number of empty tolerations.
func emptyTolerations(tasks, each int) string {
	var all []string
	for i := range tasks {
		all = append(all, fmt.Sprintf(`{"name":"t%d","replicas":1,"template":{"spec":{"containers":[{"name":"main","image":"x"}],`+
			`"tolerations":[{}%s]}}}`,
			i, strings.Repeat(",{}", each-1)))
	}
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"batch.volcano.sh",` +
		`"version":"v1alpha1","kind":"Job"},"namespace":"default","name":"j","operation":"CREATE","userInfo":{"username":"joe"},` +
		`"object":{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"j","namespace":"default"},"spec":{` +
		`"minAvailable":1,"queue":"default","tasks":[` + strings.Join(all, ",") + `]}}}}`
}

// hostileFlows returns the same for JobFlows.
func hostileFlows(t testing.TB) map[string]struct{ body, want string } {
	t.Helper()
	chain := func(n int) string {
		var flows strings.Builder
		flows.WriteString("spec:\n  flows:\n  - {name: n0}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&flows, "  - {name: n%d, dependsOn: {targets: [n%d]}}\n", i, i-1)
		}
		return string(review(t, "CREATE", mergedOver(t, plainJobFlow, flows.String())))
	}
	var targets strings.Builder
	targets.WriteString("spec: {flows: [{name: load}, {name: train, dependsOn: {targets: [load")
	for range 5_000 {
		targets.WriteString(", load")
	}
	return map[string]struct{ body, want string }{
		"five thousand flows in a chain":        {chain(5_000), "spec.flows: are 5000"},
		"a flow that waits five thousand times": {string(review(t, "CREATE", mergedOver(t, plainJobFlow, targets.String()+"]}}]}"))), "are 5001"},
	}
}

// longChain returns a graph in which each name points to the next one.
func longChain(n int) (names []string, edges [][]string) {
	for i := range n {
		names, edges = append(names, fmt.Sprint(i)), append(edges, []string{fmt.Sprint(i + 1)})
	}
	return names, edges
}

// TestLongChain checks that cycleOf needs only one walk to look for a cycle, also in a long chain.
func TestLongChain(t *testing.T) {
	names, edges := longChain(100_000)
	find := func() []string {
		return stringsOf(cycleOf(typed.Strings(names), types.DefaultTypeAdapter.NativeToValue(edges)))
	}
	begin := time.Now()
	if got := find(); len(got) != 0 {
		t.Errorf("a chain is a cycle: %d", len(got))
	}
	edges[len(edges)-1] = []string{"7"}
	if got := find(); len(got) != len(names)-7+1 || got[0] != "7" || got[len(got)-1] != "7" {
		t.Errorf("a cycle of %d", len(got))
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func hookServer(t testing.TB) http.Handler {
	t.Helper()
	c := fakeClient(t, interceptor.Funcs{})
	if err := c.Create(t.Context(), &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	return testServer(t, Options{}, c).handler()
}

// ask returns the answer of a handler to a review.
func ask(t testing.TB, h http.Handler, path, body string) string {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Body.String()
}

// TestHostile checks that objects that would keep the webhook busy are refused with a message that people can read.
func TestHostile(t *testing.T) {
	h := hookServer(t)
	for name, c := range hostile(t) {
		for _, path := range []string{"/jobs/mutate", "/jobs/validate"} {
			answer := ask(t, h, path, c.body)
			if path == "/jobs/validate" && (!strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, c.want)) {
				t.Errorf("%s: %.600s", name, answer)
			}
			if len(answer) > 1<<16 && path == "/jobs/validate" {
				t.Errorf("%s: the answer has %d bytes", name, len(answer))
			}
		}
	}
	for name, c := range hostileFlows(t) {
		if answer := ask(t, h, "/jobflows/validate", c.body); !strings.Contains(answer, c.want) || !strings.Contains(answer, `"allowed":false`) {
			t.Errorf("%s: %.600s", name, answer)
		}
	}
}

// BenchmarkHostile measures the review of hostile objects, and of Jobs of the largest permitted size. One review may allocate at most
// 64 MiB (B/op), and use at most 0.5 s of CPU.
func BenchmarkHostile(b *testing.B) {
	h := hookServer(b)
	for name, c := range costlyReviews(b) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			ask(b, h, c.path, c.body) // work that is done only once does not count
			b.ReportAllocs()
			began := cpu(b)
			for b.Loop() {
				ask(b, h, c.path, c.body)
			}
			b.ReportMetric((cpu(b)-began).Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkReviewsAt200 measures how long a review of a Job with ten tasks takes. It sends 200 reviews a second and does not wait for the
// answers. Half of the reviews fill in, and half check. Run it with -benchtime 2000x. ns/op is the time between two reviews, not their
// cost.
func BenchmarkReviewsAt200(b *testing.B) {
	server := httptest.NewServer(hookServer(b))
	defer server.Close()
	body := string(review(b, "CREATE", jobOfTasks(b, 10, "")))
	took := make([]time.Duration, b.N)
	var all sync.WaitGroup
	pace := time.NewTicker(time.Second / 200)
	defer pace.Stop()
	b.ResetTimer()
	for i := range b.N {
		<-pace.C
		all.Go(func() {
			start, path := time.Now(), []string{"/jobs/mutate", "/jobs/validate"}[i%2]
			answer, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(body)) //nolint:noctx // the server ends it
			if err != nil {
				b.Error(err)
				return
			}
			if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
				b.Error(answer.Status, err)
			}
			took[i] = time.Since(start)
		})
	}
	all.Wait()
	slices.Sort(took)
	at := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}
