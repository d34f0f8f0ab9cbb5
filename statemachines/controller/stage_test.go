package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/controller/flows"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// kubelet is a finalizer of every pod on a stage, so that a deleted pod terminates until it is released.
const kubelet = "test.celsius.dev/kubelet"

const namespace = "team"

var errTrouble = errors.New("the API server is not well")

// trouble makes one write of a run fail.
type trouble struct {
	call  int  // which write: 1 is the first, 0 is none
	after bool // the write is done, and only the answer is lost
	dies  bool // the controller crashes at this write; otherwise it continues with its memory
}

// stage simulates a cluster. It has an API of a fake client, and controllers that the test calls directly. The test acts as scheduler,
// kubelet and user.
type stage struct {
	t       *testing.T
	client  client.WithWatch // the client of the controllers
	api     client.WithWatch // the same objects, without trouble
	parts   *parts
	now     time.Time
	trouble trouble
	amnesia bool // every reconcile is done by a new controller without memory
	dead    bool
	// reconcilers are the controllers, by the kinds of objects that wake them.
	reconcilers map[string]reconcile.Reconciler
	// pace limits status writes with the clock of the stage. It outlives controllers, so that tests without memory are limited as well.
	pace *pace

	// refuse, if set, returns the error with which the API server refuses to create an object.
	refuse func(client.Object) error
	// refuseDelete returns the error with which the API server refuses to delete an object. If it is nil, the API server refuses none.
	refuseDelete func(client.Object) error

	mu     sync.Mutex
	calls  int
	made   map[string]int // how often each object was created
	lines  []string       // the events, without repetitions
	nextID int
}

// shared contains what all stages share because it is expensive to create.
type shared struct {
	machines map[string]*statemachines.Machine
	scheme   *runtime.Scheme
}

var builtIn = sync.OnceValue(func() shared {
	machines := map[string]*statemachines.Machine{}
	for _, name := range statemachines.Names() {
		machines[name], _ = statemachines.Default(name)
	}
	scheme, err := newScheme()
	if err != nil {
		panic(err)
	}
	return shared{machines, scheme}
})

func newStage(t *testing.T, o Options, objects ...client.Object) *stage {
	t.Helper()
	scheme := builtIn().scheme
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())).
		WithStatusSubresource(&batchv1alpha1.Job{}, &batchv1alpha1.CronJob{}, &schedulingv1beta1.Queue{}, &flowv1alpha1.JobFlow{},
			&flowv1alpha1.JobTemplate{})
	for _, x := range indexes() {
		b = b.WithIndex(x.kind, x.name, x.key)
	}
	s := &stage{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), made: map[string]int{}, api: b.Build()}
	s.client = interceptor.NewClient(s.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return s.write(func() error { return s.create(ctx, c, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return s.write(func() error {
				if s.refuseDelete != nil {
					if err := s.refuseDelete(obj); err != nil {
						return err
					}
				}
				return c.Delete(ctx, obj, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.write(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return s.write(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			return s.write(func() error { return s.apply(ctx, c.SubResource(sub), obj) })
		},
	})
	if o.StateMachines == nil {
		o.StateMachines = builtIn().machines
	}
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s.parts = &parts{
		live: realNames{s.api}, leftOut: func(client.Object) error { return nil }, recorder: s, options: o,
		now: func() time.Time { return s.now },
	}
	s.newController()
	for _, obj := range objects {
		s.add(obj)
	}
	return s
}

// newController clears the memory of the controllers.
func (s *stage) newController() {
	s.dead = false
	s.parts.memory = newMemory()
	s.parts.metrics = newMetrics(prometheus.NewRegistry())
	s.parts.client = s.client
	if s.pace == nil { // the cluster limits writes of all controllers together
		s.pace = newPace(s.parts.now, s.parts.metrics)
	}
	s.parts.client = pacedClient{s.client, s.pace}
	j, err := newJobs(s.parts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.reconcilers = map[string]reconcile.Reconciler{
		"job":     j,
		"jobflow": flows.New(s.ofFlows()), "jobtemplate": &flows.Templates{Shared: s.ofFlows()},
		"queue":   &queues{s.parts, s.parts.options.StateMachines[queueMachine], newTally()},
		"cronjob": newCronJobs(s.parts),
		"pod":     &barePods{s.parts}, "podgroup": newGroupEnds(s.parts),
		"command": &commands{s.parts, make(wake, wakeBuffer), make(wake, wakeBuffer)},
	}
}

// ofFlows lets flows also create Jobs of the scheduler other, whose phases the test sets.
func (s *stage) ofFlows() flows.Shared {
	shared := s.parts.ofFlows()
	serves := shared.Serves
	shared.Serves = func(scheduler string) bool { return scheduler == "other" || serves(scheduler) }
	return shared
}

// write does a write of the controllers, or lets it fail.
func (s *stage) write(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errTrouble
	}
	s.calls++
	if s.calls != s.trouble.call {
		return do()
	}
	s.dead = s.trouble.dies
	if s.trouble.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errTrouble
}

func (s *stage) create(ctx context.Context, c client.Client, obj client.Object, opts ...client.CreateOption) error {
	if s.refuse != nil {
		if err := s.refuse(obj); err != nil {
			return err
		}
	}
	s.nextID++
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", s.nextID)))
	obj.SetCreationTimestamp(metav1.NewTime(s.now))
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.Finalizers = append(pod.Finalizers, kubelet)
		pod.Status.Phase = corev1.PodPending
	}
	if err := c.Create(ctx, obj, opts...); err != nil {
		obj.SetUID("")
		return err
	}
	s.made[fmt.Sprintf("%T %s", obj, obj.GetName())]++
	return nil
}

// apply replaces server-side apply, which the simple object tracker does not support. If one manager applies all fields of a status, a
// merge has the same result. The other tracker is far slower.
func (s *stage) apply(ctx context.Context, c client.SubResourceWriter, obj runtime.ApplyConfiguration) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	whole := &unstructured.Unstructured{Object: fields}
	if _, found, _ := unstructured.NestedSlice(fields, "status", "active"); !found && whole.GetKind() == "CronJob" {
		if err := unstructured.SetNestedField(fields, nil, "status", "active"); err != nil { // fields that are no longer applied are removed
			return err
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return c.Patch(ctx, whole, client.RawPatch(types.MergePatchType, text))
}

// Eventf records an event; it is the recorder of the controllers.
func (s *stage) Eventf(on runtime.Object, _ runtime.Object, kind, reason, _, note string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "?"
	if o, ok := on.(client.Object); ok {
		name = o.GetName()
	}
	line := fmt.Sprintf("%s %s %s: %s", name, kind, reason, fmt.Sprintf(note, args...))
	if !slices.Contains(s.lines, line) {
		s.lines = append(s.lines, line)
	}
}

// told reports whether an event that contains the text was sent.
func (s *stage) told(text string) bool {
	return slices.ContainsFunc(s.lines, func(l string) bool { return strings.Contains(l, text) })
}

func (s *stage) add(obj client.Object) {
	s.t.Helper()
	s.nextID++
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("uid-%d", s.nextID)))
	}
	if at := obj.GetCreationTimestamp(); at.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(s.now))
	}
	if err := s.api.Create(context.Background(), obj); err != nil {
		s.t.Fatalf("add %T %s: %v", obj, obj.GetName(), err)
	}
}

// settle calls the controllers for every object until none of them writes any more or requests an early retry.
func (s *stage) settle() {
	s.t.Helper()
	const rounds = 60
	for range rounds {
		before := s.calls
		again, soon := s.round()
		switch {
		case s.calls > before || again:
		case soon:
			s.now = s.now.Add(countsEvery)
		default:
			return
		}
	}
	s.t.Fatalf("the controllers do not come to rest; events:\n%s", strings.Join(s.lines, "\n"))
}

// round reconciles each object once. It returns whether an object must be reconciled again at once, or soon.
func (s *stage) round() (again, soon bool) {
	for _, kind := range []string{"command", "queue", "pod", "podgroup", "cronjob", "jobflow", "jobtemplate", "job"} {
		for _, name := range s.names(kind) {
			a, b := s.reconcile(kind, name)
			again, soon = again || a, soon || b
		}
	}
	return again, soon
}

// reconcile reconciles one object, in the same way as round.
func (s *stage) reconcile(kind string, name types.NamespacedName) (again, soon bool) {
	if s.amnesia && kind != "command" && len(s.names("command")) == 0 && !s.asked() || s.dead {
		s.newController()
	}
	s.watchGroups()
	var raw error
	reconciler := reconcile.Func(func(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
		result, raw = s.reconcilers[kind].Reconcile(ctx, req)
		return result, raw
	})
	result, err := patient{reconciler}.Reconcile(context.Background(), reconcile.Request{NamespacedName: name})
	if later := (*tooSoon)(nil); errors.As(raw, &later) { // nothing happens until the status may be written
		s.now, again = s.now.Add(later.wait), true
	}
	if err != nil && !errors.Is(err, errTrouble) {
		s.t.Logf("%s %s: %v", kind, name, err)
	}
	within := func(most time.Duration) bool { return result.RequeueAfter > 0 && result.RequeueAfter <= most }
	return again || errors.Is(err, errTrouble) || s.dead || within(catchUp), within(countsEvery)
}

// watchGroups passes every PodGroup to the queue controller, as its watch does.
func (s *stage) watchGroups() {
	s.t.Helper()
	list := &schedulingv1beta1.PodGroupList{}
	if err := s.api.List(context.Background(), list); err != nil {
		s.t.Fatal(err)
	}
	groups := newTally()
	for i := range list.Items {
		groups.see(&list.Items[i])
	}
	if q, ok := s.reconcilers["queue"].(*queues); ok {
		q.groups = groups
	}
}

// asked reports whether a command was taken and not executed yet.
func (s *stage) asked() bool {
	for _, r := range s.parts.memory.byName {
		if _, ok := r.asked(); ok {
			return true
		}
	}
	return false
}

func (s *stage) names(kind string) []types.NamespacedName {
	var list client.ObjectList
	switch kind {
	case "job":
		list = &batchv1alpha1.JobList{}
	case "queue":
		list = &schedulingv1beta1.QueueList{}
	case "cronjob":
		list = &batchv1alpha1.CronJobList{}
	case "pod":
		list = &corev1.PodList{}
	case "podgroup":
		list = &schedulingv1beta1.PodGroupList{}
	case "jobflow":
		list = &flowv1alpha1.JobFlowList{}
	case "jobtemplate":
		list = &flowv1alpha1.JobTemplateList{}
	case "command":
		list = &busv1alpha1.CommandList{}
	}
	if err := s.api.List(context.Background(), list); err != nil {
		s.t.Fatal(err)
	}
	var out []types.NamespacedName
	for _, obj := range objectsOf(s.t, list) {
		out = append(out, client.ObjectKeyFromObject(obj))
	}
	return out
}

func objectsOf(t *testing.T, list client.ObjectList) []client.Object {
	t.Helper()
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	var out []client.Object
	for _, item := range items {
		out = append(out, item.(client.Object))
	}
	return out
}

func (s *stage) pods() []*corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	if err := s.api.List(context.Background(), list); err != nil {
		s.t.Fatal(err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

func (s *stage) job() *batchv1alpha1.Job {
	s.t.Helper()
	job := &batchv1alpha1.Job{}
	if err := s.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "train"}, job); err != nil {
		s.t.Fatal(err)
	}
	return job
}

func (s *stage) queue(name string) *schedulingv1beta1.Queue {
	s.t.Helper()
	queue := &schedulingv1beta1.Queue{}
	if err := s.api.Get(context.Background(), types.NamespacedName{Name: name}, queue); err != nil {
		s.t.Fatal(err)
	}
	return queue
}

func (s *stage) groups() []schedulingv1beta1.PodGroup {
	s.t.Helper()
	list := &schedulingv1beta1.PodGroupList{}
	if err := s.api.List(context.Background(), list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// letIn acts as the scheduler: it sets the phase of all PodGroups.
func (s *stage) letIn(phase schedulingv1beta1.PodGroupPhase) {
	s.t.Helper()
	for _, g := range s.groups() {
		g.Status.Phase = phase
		if err := s.api.Update(context.Background(), &g); err != nil {
			s.t.Fatal(err)
		}
	}
}

// play sets the phase of the pods whose names match, and the exit code of their only container.
func (s *stage) play(match string, phase corev1.PodPhase, exitCode int32) {
	s.t.Helper()
	for _, pod := range s.pods() {
		if !strings.Contains(pod.Name, match) || deleting(pod) {
			continue
		}
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
		if finished(pod) {
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{
				ExitCode:   exitCode,
				FinishedAt: metav1.NewTime(s.now),
			}
		}
		if err := s.api.Status().Update(context.Background(), pod); err != nil {
			s.t.Fatal(err)
		}
	}
}

// release acts as the kubelet: it removes pods that are being deleted.
func (s *stage) release() {
	s.t.Helper()
	for _, pod := range s.pods() {
		if !deleting(pod) {
			continue
		}
		pod.Finalizers = nil
		if err := s.api.Update(context.Background(), pod); err != nil {
			s.t.Fatal(err)
		}
	}
}

// evict deletes a pod, as another client.
func (s *stage) evict(name string) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := s.api.Delete(context.Background(), pod); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) command(action string, kind, group, name string) {
	s.t.Helper()
	s.commandWith(action, metav1.OwnerReference{APIVersion: group, Kind: kind, Name: name})
}

func (s *stage) commandWith(action string, target metav1.OwnerReference) {
	s.t.Helper()
	c := &busv1alpha1.Command{Action: action, TargetObject: &target}
	s.nextID++
	c.Namespace, c.Name, c.CreationTimestamp = namespace, fmt.Sprintf("%s-%d", strings.ToLower(action), s.nextID), metav1.NewTime(s.now)
	s.add(c)
}

// commandQueue sends a Command to the queue default.
func (s *stage) commandQueue(action string) {
	s.t.Helper()
	s.commandTo(action, "default")
}

// commandTo sends a Command to a queue.
func (s *stage) commandTo(action, queue string) {
	s.t.Helper()
	s.commandWith(action, metav1.OwnerReference{
		APIVersion: schedulingv1beta1.GroupVersion.String(), Kind: "Queue", Name: queue, UID: s.queue(queue).UID,
	})
	s.settle()
}

// commandJob sends a Command and lets it take effect. A Command is executed at most once: if it was lost with a controller, the user sends
// another one.
func (s *stage) commandJob(action string) {
	s.t.Helper()
	was := s.job().Status.State.Phase
	for range 2 {
		s.command(action, "Job", batchv1alpha1.GroupVersion.String(), "train")
		s.settle()
		if s.job().Status.State.Phase != was {
			return
		}
	}
}

// state returns everything that the controllers wrote, in a form in which runs can be compared.
func (s *stage) state() string {
	s.t.Helper()
	var b strings.Builder
	jobs := &batchv1alpha1.JobList{}
	if err := s.api.List(context.Background(), jobs); err != nil {
		s.t.Fatal(err)
	}
	for i := range jobs.Items {
		st := jobs.Items[i].Status
		fmt.Fprintf(&b, "job %s %s %q v%d r%d min%d pending%d running%d succeeded%d failed%d terminating%d tasks%v owes%v\n", jobs.Items[i].Name,
			st.State.Phase, st.State.Reason, st.Version, st.RetryCount, st.MinAvailable, st.Pending, st.Running, st.Succeeded, st.Failed,
			st.Terminating,
			st.TaskStatusCount, withoutUIDs(st.ControlledResources))
		for _, c := range st.Conditions {
			fmt.Fprintf(&b, "  was %s\n", c.Status)
		}
		for _, c := range st.LimitConditions {
			fmt.Fprintf(&b, "  limit %s %s %d of %d\n", c.Type, c.Status, c.Count, c.Limit)
		}
	}
	for _, pod := range s.pods() {
		fmt.Fprintf(&b, "pod %s %s deleting=%v version=%s retry=%s\n", pod.Name, pod.Status.Phase, deleting(pod),
			pod.Annotations[batchv1alpha1.JobVersion], pod.Annotations[batchv1alpha1.JobRetryCountKey])
	}
	for _, name := range s.beside() {
		fmt.Fprintf(&b, "beside %s\n", name)
	}
	for _, g := range s.groups() {
		fmt.Fprintf(&b, "group %s %s min%d %v\n", g.Name, g.Status.Phase, g.Spec.MinMember, g.Spec.MinTaskMember)
	}
	for _, q := range s.names("queue") {
		st := s.queue(q.Name).Status
		fmt.Fprintf(&b, "queue %s %s pending%d inqueue%d running%d unknown%d completed%d\n", q.Name, st.State, st.Pending, st.Inqueue, st.Running,
			st.Unknown, st.Completed)
	}
	for _, name := range slices.Sorted(maps.Keys(s.made)) {
		fmt.Fprintf(&b, "made %s %d times\n", name, s.made[name])
	}
	return b.String()
}

// withoutUIDs returns the entries of a ledger without values that differ between runs.
func withoutUIDs(ledger map[string]string) map[string]string {
	out := maps.Clone(ledger)
	for key := range out {
		if strings.HasPrefix(key, madeKey) {
			out[key] = "made"
		}
	}
	return out
}

// beside lists the objects that plugins created, by kind and name.
func (s *stage) beside() (names []string) {
	s.t.Helper()
	for _, kind := range jobplugin.Kinds() {
		version, word, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(word + "List")
		if err := s.api.List(context.Background(), list); err != nil {
			s.t.Fatal(err)
		}
		for _, u := range list.Items {
			names = append(names, word+" "+u.GetName())
		}
	}
	return names
}

func parseJob(t *testing.T, text string) *batchv1alpha1.Job {
	t.Helper()
	job := &batchv1alpha1.Job{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	job.Namespace, job.UID = namespace, "job-uid"
	job.ResourceVersion = ""
	return job
}

func openQueue() *schedulingv1beta1.Queue {
	return &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "queue-uid"}}
}
