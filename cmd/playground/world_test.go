package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// worldLabel is on every node of a world, with the world's name.
const worldLabel = "celsius.dev/world"

// maxWorlds is the maximum number of worlds of a test binary: the webhook gets their scheduler names at its start.
const maxWorlds = 500

// world is one test's own part of the test binary's cluster. Other tests do not see its objects, so tests run in parallel. A test begins
// with
//
//	w := newWorld(t)
//	w.Nodes(3, "cpu=8,memory=32Gi")
//	w.StartScheduler()
//	w.StartControllers()
//	w.Apply(`…`)
//	w.Wait("job is Running", func() error { … })
//
// and needs no cleanup. The cluster is a real API server with kube-controller-manager, and KWOK nodes. Pods run until their deletion, or as
// their celsius.dev/sim defines. All worlds share one webhook.
//
// In the YAML for Apply, and in the arguments of Kubectl and Process, these placeholders stand for the world's own names. Other text stays
// unchanged:
//
//	${world}      name of the world, value of the label celsius.dev/world on its nodes
//	${namespace}  the namespace
//	${scheduler}  the scheduler name: a pod or a Job of another world is not scheduled here
//	${policy}     the SchedulingPolicy that StartScheduler serves; without such an object the
//	              embedded default
//	${queue.X}    the queue that the test calls X; queues are cluster-scoped
type world struct {
	t testing.TB

	// Name is unique in the test binary.
	Name string
	// Namespace exists, with its service account.
	Namespace string
	// SchedulerName is the name that StartScheduler and StartControllers serve.
	SchedulerName string
	// Policy is the name of the SchedulingPolicy that StartScheduler serves.
	Policy string
	// NodeSelector selects the nodes of this world.
	NodeSelector string
	// Kubeconfig is a file whose context uses Namespace.
	Kubeconfig string
	// Config is the administrator's client configuration.
	Config *rest.Config
	// Client supports Kubernetes' kinds and ours. It does not cache.
	Client client.WithWatch
	// Kube is the client for Kubernetes' own kinds, for subresources and similar requests.
	Kube kubernetes.Interface
	// Context ends when the test ends.
	Context context.Context
}

// newWorld creates a world. The first call of a test binary starts the cluster.
func newWorld(t testing.TB) *world {
	t.Helper()
	b := theBed.get(t)
	b.mu.Lock()
	b.worlds++
	number := b.worlds
	b.mu.Unlock()
	if number > maxWorlds {
		t.Fatalf("this is world %d, and the webhook knows %d: raise maxWorlds", number, maxWorlds)
	}
	name := worldName(number)
	w := &world{
		t:             t,
		Name:          name,
		Namespace:     name,
		SchedulerName: name,
		Policy:        name,
		NodeSelector:  worldLabel + "=" + name,
		Kubeconfig:    filepath.Join(t.TempDir(), "kubeconfig"),
		Config:        rest.CopyConfig(b.plane.config),
		Client:        b.client,
		Kube:          b.kube,
		Context:       t.Context(),
	}
	w.writeKubeconfig(b.plane)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	if err := w.Client.Create(w.Context, namespace); err != nil {
		t.Fatalf("namespace: %v", err)
	}
	t.Cleanup(w.clear)
	w.Wait("service account of the namespace", func() error {
		return w.Client.Get(w.Context, client.ObjectKey{Namespace: w.Namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	return w
}

// In returns the same world for a subtest, which then fails by itself. Everything that is started through it ends with the subtest.
func (w *world) In(t testing.TB) *world {
	in := *w
	in.t, in.Context = t, t.Context()
	return &in
}

func worldName(number int) string { return fmt.Sprintf("e2e-%d", number) }

func (w *world) writeKubeconfig(plane *controlPlane) {
	w.t.Helper()
	config, err := clientcmd.LoadFromFile(plane.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	config.Contexts[contextName].Namespace = w.Namespace
	if err := clientcmd.WriteToFile(*config, w.Kubeconfig); err != nil {
		w.t.Fatal(err)
	}
}

// clear removes the world from the cluster. It deletes pods first and without a grace period, because nothing ends them on a deleted node.
// On a slow machine, hundreds of pods take longer than the API server's limit for one request.
func (w *world) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
	defer cancel()
	over := *w
	over.Context = ctx
	at0 := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	over.Wait("the pods of the world are deleted", func() error {
		return w.Kube.CoreV1().Pods(w.Namespace).DeleteCollection(ctx, at0, metav1.ListOptions{})
	})
	err := errors.Join(
		w.Kube.CoreV1().Namespaces().Delete(ctx, w.Namespace, metav1.DeleteOptions{}),
		w.Kube.CoreV1().Nodes().DeleteCollection(ctx, at0, metav1.ListOptions{LabelSelector: w.NodeSelector}),
		client.IgnoreNotFound(w.Client.Delete(ctx, &policyv1alpha1.SchedulingPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.Policy}})),
	)
	queues := &schedulingv1beta1.QueueList{}
	err = errors.Join(err, w.Client.List(ctx, queues))
	depth := func(q schedulingv1beta1.Queue) (n int) { // queues with children cannot be deleted
		for ok := true; ok; n++ {
			at := slices.IndexFunc(queues.Items, func(above schedulingv1beta1.Queue) bool { return above.Name == q.Spec.Parent })
			if ok = at >= 0 && n < len(queues.Items); ok {
				q = queues.Items[at]
			}
		}
		return n
	}
	slices.SortFunc(queues.Items, func(a, b schedulingv1beta1.Queue) int { return depth(b) - depth(a) })
	for i := range queues.Items {
		if q := &queues.Items[i]; strings.HasPrefix(q.Name, w.Queue("")) { // no controller counts its pods any more
			uncounted := client.RawPatch(types.MergePatchType, []byte(`{"status":{"allocated":null}}`))
			err = errors.Join(err, w.Client.Status().Patch(ctx, q, uncounted), w.Client.Delete(ctx, q))
		}
	}
	if err != nil {
		w.t.Errorf("clear the world: %v", err)
	}
}

// Queue returns the name in the cluster of the queue that this test calls name. It does not create the queue.
func (w *world) Queue(name string) string { return w.Name + "-" + name }

var placeholder = regexp.MustCompile(`\$\{[^}]*\}`)

// Expand inserts the world's own names; see world.
func (w *world) Expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		key := found[2 : len(found)-1]
		if queue, ok := strings.CutPrefix(key, "queue."); ok {
			return w.Queue(queue)
		}
		names := map[string]string{"world": w.Name, "namespace": w.Namespace, "scheduler": w.SchedulerName, "policy": w.Policy}
		if name, ok := names[key]; ok {
			return name
		}
		return found
	})
}

// Nodes creates n Ready nodes of the shape (as in --node-shape, without a count), and returns their names. Each call creates further nodes.
func (w *world) Nodes(n int, text string) []string {
	w.t.Helper()
	s, err := parseShape(text)
	if err != nil {
		w.t.Fatal(err)
	}
	s.count = n
	s.labels = maps.Clone(s.labels)
	s.labels[worldLabel] = w.Name
	there, err := w.Kube.CoreV1().Nodes().List(w.Context, metav1.ListOptions{LabelSelector: w.NodeSelector})
	if err != nil {
		w.t.Fatal(err)
	}
	prefix := w.Name + "-node-"
	if len(there.Items) > 0 {
		prefix = fmt.Sprintf("%s%d-", prefix, len(there.Items))
	}
	names, err := createNodes(w.Context, w.Kube, prefix, []shape{s})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Wait("nodes are Ready", func() error {
		nodes, err := w.Kube.CoreV1().Nodes().List(w.Context, metav1.ListOptions{LabelSelector: w.NodeSelector})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if !isReady(&nodes.Items[i]) {
				return fmt.Errorf("%s is not", nodes.Items[i].Name)
			}
		}
		return nil
	})
	return names
}

// Apply applies every document of the YAML, after Expand, in the same way as kubectl apply --server-side. Objects without a namespace get
// the world's namespace.
func (w *world) Apply(yaml string) {
	w.t.Helper()
	if err := w.TryApply(yaml); err != nil {
		w.t.Fatal(err)
	}
}

// TryApply is Apply for objects that the API server may refuse. It stops at the first refusal.
func (w *world) TryApply(yaml string) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(w.Expand(yaml)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return fmt.Errorf("read YAML: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		gvk := object.GroupVersionKind()
		mapping, err := w.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, object.GetName(), err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
			object.SetNamespace(w.Namespace)
		}
		if err := w.Client.Apply(w.Context, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("e2e"),
			client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, object.GetName(), err)
		}
	}
}

// Get reads the object with that name. For namespaced kinds it uses the world's namespace.
func (w *world) Get(name string, into client.Object) error {
	key := client.ObjectKey{Name: name}
	if namespaced, err := w.Client.IsObjectNamespaced(into); err != nil {
		return err
	} else if namespaced {
		key.Namespace = w.Namespace
	}
	return w.Client.Get(w.Context, key, into)
}

// Pods returns the pods of the world's namespace that match the label selector; "" selects all.
func (w *world) Pods(selector string) []corev1.Pod {
	w.t.Helper()
	pods, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.Context, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.t.Fatal(err)
	}
	return pods.Items
}

// Kubectl runs kubectl in the world's namespace, with its arguments after Expand, and returns the output of both streams. The test fails if
// kubectl fails. Commands that wait have the time limit of Wait, and return no output.
func (w *world) Kubectl(args ...string) string {
	w.t.Helper()
	if args[0] == "wait" || args[0] == "rollout" {
		w.kubectlWait(args...)
		return ""
	}
	r := w.TryKubectl("", args...)
	if r.Code != 0 {
		w.t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out + r.Err
}

// ran is the result of a command.
type ran struct {
	Out, Err string
	Code     int
}

// TryKubectl is Kubectl with a standard input (after Expand) for -f -. It returns the result.
func (w *world) TryKubectl(stdin string, args ...string) ran {
	w.t.Helper()
	full := []string{"kubectl", "--kubeconfig", w.Kubeconfig}
	for _, arg := range args {
		full = append(full, w.Expand(arg))
	}
	cmd := playgroundCommand(w.Context, full...)
	cmd.Stdin = strings.NewReader(w.Expand(stdin))
	return runCommand(w.t, cmd)
}

// playgroundCommand returns the playground with these arguments, as a process.
func playgroundCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsProgram+"=1")
	return cmd
}

func runCommand(t testing.TB, cmd *exec.Cmd) ran {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	return ran{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// gone returns nil if the object no longer exists.
func (w *world) gone(name string, object client.Object) error {
	err := w.Get(name, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%T %s is still there", object, name)
}

// process is a part of the product in a separate process, so that it can be killed.
type process struct {
	w    *world
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error
}

// celsius is the binary, which is built once per test binary, when the first test needs it.
var celsius struct {
	once sync.Once
	path string
	err  error
}

// celsiusBinary builds cmd/celsius and gives the path of the binary.
func celsiusBinary(t testing.TB) string {
	t.Helper()
	b := theBed.get(t)
	celsius.once.Do(func() {
		celsius.path = filepath.Join(b.dir, "celsius")
		out, err := exec.Command("go", "build", "-o", celsius.path, "../celsius").CombinedOutput()
		if err != nil {
			celsius.err = fmt.Errorf("build cmd/celsius: %w\n%s", err, out)
		}
	})
	if celsius.err != nil {
		t.Fatal(celsius.err)
	}
	return celsius.path
}

// Process starts `celsius VERB ARGS…` with --kubeconfig added and the arguments after Expand. It is killed at the end of the test. Process
// does not wait until it is ready: wait for its effects instead.
func (w *world) Process(verb string, args ...string) *process {
	w.t.Helper()
	full := []string{verb, "--kubeconfig", w.Kubeconfig}
	for _, arg := range args {
		full = append(full, w.Expand(arg))
	}
	log, err := os.Create(filepath.Join(w.t.TempDir(), verb+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{w: w, cmd: exec.Command(celsiusBinary(w.t), full...), log: log.Name(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		p.err = errors.Join(p.cmd.Wait(), log.Close())
		close(p.done)
	}()
	w.t.Cleanup(func() {
		p.Kill()
		if w.t.Failed() {
			w.t.Logf("log of celsius %s, but for its start:\n%s", verb, startLine.ReplaceAllString(p.Log(), ""))
		}
	})
	return p
}

// startLine is a line that controllers print when they start. Twenty such lines for each killed process would hide the cause of a failure.
var startLine = regexp.MustCompile(`(?m)^.*\] "Starting (EventSource|Controller|workers)".*\n`)

// Kill ends the process with SIGKILL, and waits until it has ended.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// Signal sends a signal to the process, if it still exists.
func (p *process) Signal(s os.Signal) {
	p.w.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.w.t.Fatal(err)
	}
}

// Stop ends the process with SIGTERM, waits until it has ended, and returns its exit code.
func (p *process) Stop() int {
	p.w.t.Helper()
	p.Signal(syscall.SIGTERM)
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Exited is closed when the process has ended in any way.
func (p *process) Exited() <-chan struct{} { return p.done }

// Log returns the output of the process so far.
func (p *process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// PeakMemory returns the maximum memory of the process so far, in bytes.
func (p *process) PeakMemory() int {
	kib := 0
	p.w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.w.t.Fatal(err)
	}
	_, peak, found := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &kib); err != nil || !found {
		p.w.t.Fatalf("how much memory the process had: %v\n%s", err, status)
	}
	return kib << 10
}
