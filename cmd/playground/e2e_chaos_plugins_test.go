package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// pluginJobs describes one kind of job in TestControllersEndAmidPlugins. The table statemachines/job.yaml defines the phases of each job.
// They depend on its policies and on how its pods end, but not on when controllers end.
type pluginJobs struct {
	chaosJobs

	spec string // of the Job, without its tasks
	// path is a regular expression for the phases of the job, each with the reason if it has one.
	path string
	gone bool // it does not exist at the end
	hand hand // what a user does to it
}

// hand is what users do with a running job.
type hand string

const (
	none    hand = ""
	deletes hand = "deletes it"
	renews  hand = "deletes it, and makes it anew"
	resumes hand = "aborts it, and resumes it"
)

// begun is the beginning of every path: a job may end before it was seen running.
const begun = "Pending (Running )?"

func allPluginJobs() []pluginJobs {
	const (
		whenFailed    = "policies: [{event: PodFailed, action: %s}]"
		whenCompleted = "policies: [{event: TaskCompleted, action: %s}]"
		mpi, ray      = "mpi: []", "ray: [--headContainer=main, --workerContainer=main]"
	)
	complete := fmt.Sprintf(whenCompleted, "CompleteJob")
	broken := "{run: 500ms, exitCodes: {main: 3}}"
	kind := func(name string, count int, plugins, spec, tasks, path string, end chaosJobs) pluginJobs {
		end.name, end.count, end.tasks, end.bound = name, count, tasks, 1
		return pluginJobs{chaosJobs: end, spec: "  plugins: {" + plugins + "}\n  maxRetry: 2\n" + spec, path: path}
	}
	all := []pluginJobs{
		kind("plain", 30, "env: []", "", wide("worker", 2, "{run: 1s}"), "Pending Running Completed",
			chaosJobs{phase: batchv1alpha1.Completed, pods: 2}),
		kind("serving", 25, "svc: [], env: []", "", wide("server", 2, "{}"), "Pending Running",
			chaosJobs{phase: batchv1alpha1.Running, pods: 2, alive: 2}),
		kind("retried", 25, "ssh: [], svc: []", "  "+fmt.Sprintf(whenFailed, "RestartJob"), wide("steady", 1, "{}")+wide("broken", 1, broken),
			begun+"Restarting:PodFailed "+begun+"Restarting:PodFailed Failed:MaxRetryReached",
			chaosJobs{phase: batchv1alpha1.Failed, retries: 2, pods: 4}),
		kind("flow", 25, "tensorflow: []", "", wide("ps", 1, "{}")+wide("chief", 1, "{run: 1s}", complete)+wide("worker", 1, "{}"),
			begun+"Completing:TaskCompleted Completed:TaskCompleted", chaosJobs{phase: batchv1alpha1.Completed, pods: 3}),
		kind("launched", 25, mpi, "", wide("master", 1, "{run: 1s}", complete)+wide("worker", 2, "{}"),
			begun+"Completing:TaskCompleted Completed:TaskCompleted", chaosJobs{phase: batchv1alpha1.Completed, pods: 3}),
		kind("torch", 30, "pytorch: []", "",
			wide("master", 1, "{}")+wide("worker", 1, broken, fmt.Sprintf(whenFailed, "RestartTask")),
			begun+"Restarting:PodFailed "+begun+"Restarting:PodFailed Failed:MaxRetryReached",
			chaosJobs{phase: batchv1alpha1.Failed, retries: 2, pods: 3}),
		kind("chained", 25, ray, "",
			wide("head", 1, "{}")+wide("worker", 2, "{run: 1s}", fmt.Sprintf(whenCompleted, "AbortJob"), "dependsOn: {name: [head]}"),
			begun+"Aborting:TaskCompleted Aborted:TaskCompleted", chaosJobs{phase: batchv1alpha1.Aborted, pods: 3}),
		kind("ranked", 20, "hcclrank: [], pytorch: []", "", wide("master", 1, "{run: 1s}")+wide("worker", 2, "{run: 1s}"),
			"Pending Running Completed", chaosJobs{phase: batchv1alpha1.Completed, pods: 3}),
		kind("short", 20, "svc: [], env: []", "  ttlSecondsAfterFinished: 1", wide("worker", 2, "{run: 1s}"), "Pending Running Completed",
			chaosJobs{pods: 2}),
		kind("stopped", 15, "env: [], hcclrank: []", "  policies: [{exitCode: 3, action: TerminateJob}]",
			wide("master", 1, "{}")+wide("worker", 1, broken), begun+"Terminating:PodFailed Terminated:PodFailed",
			chaosJobs{phase: batchv1alpha1.Terminated, pods: 2}),
		kind("keeping", 10, "env: []", "  "+fmt.Sprintf(whenFailed, "RestartJob")+claiming, wide("worker", 1, broken),
			begun+"Restarting:PodFailed "+begun+"Restarting:PodFailed Failed:MaxRetryReached",
			chaosJobs{phase: batchv1alpha1.Failed, retries: 2, pods: 2}),
		kind("everything", 20, "env: [], svc: [], ssh: [], tensorflow: [], mpi: [], pytorch: [], hcclrank: [], "+
			"ray: [--head=master, --headContainer=main, --workerContainer=main]", "  minSuccess: 1\n",
			wide("master", 1, "{run: 1s}")+wide("worker", 2, "{}"), "Pending Running Completed",
			chaosJobs{phase: batchv1alpha1.Completed, pods: 3}),
		kind("deleted", 10, mpi, "", wide("master", 1, "{}")+wide("worker", 1, "{}"), "Pending Running", chaosJobs{pods: 2}),
		kind("renewed", 10, mpi, "", wide("master", 1, "{}")+wide("worker", 1, "{}"), "Pending Running",
			chaosJobs{phase: batchv1alpha1.Running, pods: 2, alive: 2}),
		kind("resumed", 10, "tensorflow: [], env: []", "", wide("ps", 1, "{}")+wide("worker", 1, "{}"),
			"Pending Running Aborting:CommandIssued Aborted(:CommandIssued|:Suspended)? Restarting:CommandIssued Pending Running",
			chaosJobs{phase: batchv1alpha1.Running, retries: 1, pods: 4, alive: 2}),
	}
	for i := range all {
		j := &all[i]
		j.hand = map[string]hand{"deleted": deletes, "renewed": renews, "resumed": resumes}[j.name]
		j.gone = j.phase == ""
	}
	return all
}

// claiming lets a job request its own claim and mount an existing one.
const claiming = `
  volumes:
  - mountPath: /own
    volumeClaim: {storageClassName: "${world}-local", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  - {mountPath: /shared, volumeClaimName: shared}`

// wide returns a task whose pods have one init container and two other containers. more contains lines of the task.
func wide(name string, replicas int, sim string, more ...string) string {
	return fmt.Sprintf(`
  - name: %s
    replicas: %d
    %s
    template:
      metadata: {annotations: {celsius.dev/sim: %q}}
      spec:
        restartPolicy: Never
        initContainers: [{name: before, image: before}]
        containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}, {name: beside, image: beside}]`,
		name, replicas, strings.Join(more, "\n    "), sim)
}

func (j pluginJobs) yaml(number int) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s-%d}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
%s
  tasks:%s
`, j.name, number, j.spec, j.tasks)
}

// TestControllersEndAmidPlugins runs 300 jobs with all built-in plugins. The jobs run, fail, restart, end and are deleted. Meanwhile the
// controllers are killed, terminated, or stopped until others lead, at random times.
func TestControllersEndAmidPlugins(t *testing.T) {
	w := newWorld(t)
	random := seeded(t, 13)
	witness := w.Witness()
	witness.Beside(besideKinds()...)
	w.furnishForPlugins()
	w.StartScheduler()

	all := allPluginJobs()
	var submit []string
	expected := 0
	for _, kind := range all {
		for i := range kind.count {
			submit = append(submit, kind.yaml(i))
			expected += kind.pods
		}
	}
	if len(submit) != 300 {
		t.Fatalf("these are %d jobs", len(submit))
	}
	random.Shuffle(len(submit), func(i, j int) { submit[i], submit[j] = submit[j], submit[i] })
	submitted := make(chan error, 1)
	go func() { submitted <- w.TryApply(strings.Join(submit, "---\n")) }()
	users := &users{world: w, witness: witness, kinds: all, done: map[string]int{}, asked: map[string]time.Time{}}
	stop := users.begin()

	turns := w.controllersInTurn(random)
	turns.endUntil(witness, func() bool { return witness.Bindings() >= expected*19/20 })
	if err := <-submitted; err != nil {
		t.Fatal(err)
	}
	t.Logf("the controllers that led were ended %d times: %v", len(turns.ended), turns.counts())
	for _, way := range waysToEnd {
		if turns.counts()[way] < 2 {
			t.Errorf("%s: %d times, which shows nothing", way, turns.counts()[way])
		}
	}
	w.Wait("users have done all that they do", users.left)
	stop()
	for _, kind := range all {
		w.Wait(fmt.Sprintf("every job %s is %s", kind.name, kind.phase), func() error { return kind.atEnd(witness.Jobs()) })
	}
	w.Wait("nothing is there beside jobs but what is theirs", func() error { return tidy(witness) })
	w.sawAll(witness)
	h := witness.Report()
	h.Check(w)
	lives := witness.lives()
	for _, kind := range all {
		kind.checkPaths(t, lives)
		jobs := witness.Jobs()
		if kind.gone {
			jobs = latest(lives)
		}
		kind.checkPods(t, h, jobs, witness)
	}
	w.checkTold(witness, lives)
	w.checkMade(witness, lives)
	t.Logf("%d jobs, %d pods", len(lives), len(h.pods))
}

// furnishForPlugins creates enough resources for all jobs at once, and volumes.
func (w *world) furnishForPlugins() {
	nodes := w.Nodes(10, "cpu=200,pods=1000")
	w.Apply(queueA)
	w.localClass("")
	for i := range 11 {
		w.volume(fmt.Sprintf("v%d", i), nodes[0])
	}
	w.claim("shared")
}

// besideKinds returns the kinds of the objects that exist for a job, and Jobs themselves.
func besideKinds() []client.ObjectList {
	return append(madeKinds(), &batchv1alpha1.JobList{})
}

func madeKinds() []client.ObjectList {
	return []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &networkingv1.NetworkPolicyList{},
		&corev1.PersistentVolumeClaimList{}, &schedulingv1beta1.PodGroupList{},
	}
}

// The ways in which leading controllers are ended.
const (
	killed  = "killed"
	asked   = "asked to end"
	stopped = "stopped until others led"
)

var waysToEnd = []string{killed, asked, stopped}

// turns manages two replicas of the controllers. One of them holds the lease until it is ended. Then the other one leads, and a new replica
// waits.
type turns struct {
	*world
	random       *rand.Rand
	leads, after *process
	ended        []string
}

func (w *world) controllersInTurn(random *rand.Rand) *turns {
	w.t.Helper()
	x := &turns{world: w, random: random}
	x.leads = x.replica()
	x.after = x.replica()
	return x
}

// replica starts controllers with a short lease, so that the next replica does not wait long.
func (x *turns) replica() *process {
	x.t.Helper()
	return x.controllers("--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2500ms",
		"--leader-elect-retry-period", "400ms")
}

func (x *turns) controllers(more ...string) *process {
	x.t.Helper()
	return x.Process("controllers", append(more, "--scheduler-name", "${scheduler}", "--namespace", "${namespace}", "--lease-name", "${world}",
		"--metrics-address", "0", "--health-address", "0")...)
}

// last starts controllers for the rest of the test that do not lose their lease on a slow machine.
func (x *turns) last() {
	x.t.Helper()
	x.controllers()
	for _, p := range []*process{x.after, x.leads} {
		p.Stop()
	}
}

// leading is in the log of the replica that holds the lease.
const leading = "acquired lease"

// led returns nil if one of the two replicas leads. It makes x.leads that replica.
func (x *turns) led() error {
	for _, p := range []**process{&x.leads, &x.after} {
		select {
		case <-(*p).Exited(): // it lost its lease by itself, because the machine is slow
			*p = x.replica()
		default:
		}
	}
	if strings.Contains(x.after.Log(), leading) {
		x.leads, x.after = x.after, x.leads
	}
	if !strings.Contains(x.leads.Log(), leading) {
		return errors.New("none of the controllers leads")
	}
	return nil
}

// endUntil repeatedly ends the leading replica, each time after a random amount of progress, until enough returns true. Then other replicas
// lead until the end.
func (x *turns) endUntil(witness *witness, enough func() bool) {
	x.t.Helper()
	for {
		target := witness.Sightings() + 50 + x.random.IntN(250)
		x.Wait("the controllers get on so far that they are to be ended", func() error {
			if err := x.led(); err != nil || enough() {
				return err
			}
			if n := witness.Sightings(); n < target {
				return fmt.Errorf("%d of %d, turn %d", n, target, len(x.ended)+1)
			}
			return nil
		})
		if enough() {
			x.last()
			return
		}
		x.end()
	}
}

// end ends the leading replica.
func (x *turns) end() {
	x.t.Helper()
	old, way := x.leads, waysToEnd[len(x.ended)%len(waysToEnd)]
	x.ended = append(x.ended, way)
	x.leads, x.after = x.after, x.replica()
	switch way {
	case killed:
		old.Kill()
	case asked:
		old.Signal(syscall.SIGTERM)
	default:
		old.Signal(syscall.SIGSTOP)
		x.Wait("others lead", x.led)
		old.Signal(syscall.SIGCONT) // it must not write now what it decided before
	}
	<-old.Exited()
}

func (x *turns) counts() map[string]int {
	out := map[string]int{}
	for _, way := range x.ended {
		out[way]++
	}
	return out
}

// users perform the actions of users on jobs.
type users struct {
	*world
	witness *witness
	kinds   []pluginJobs

	mu    sync.Mutex
	done  map[string]int       // by the job's name, the number of completed steps
	asked map[string]time.Time // when its last Command was created
}

// begin performs the actions in the background until stop is called.
func (u *users) begin() (stop func()) {
	ended, ending := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ending:
				return
			case <-u.Context.Done():
				return
			case <-tick.C:
				u.look()
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(ending); <-ended })
	u.t.Cleanup(stop)
	return stop
}

func (u *users) look() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, kind := range u.kinds {
		for i := range kind.count {
			if kind.hand == none {
				break
			}
			if err := u.handle(kind, i); err != nil && u.Context.Err() == nil {
				u.t.Errorf("somebody %s: job %s-%d: %v", kind.hand, kind.name, i, err)
			}
		}
	}
}

// steps returns the number of steps of an action.
func (h hand) steps() int { return map[hand]int{deletes: 1, renews: 2, resumes: 2}[h] }

// left returns nil when all actions are complete.
func (u *users) left() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, kind := range u.kinds {
		for i := range kind.count {
			if name := fmt.Sprintf("%s-%d", kind.name, i); u.done[name] < kind.hand.steps() {
				return fmt.Errorf("job %s: %d of %d steps are done", name, u.done[name], kind.hand.steps())
			}
		}
	}
	return nil
}

// handle performs the next step on a job, if it is time for it.
func (u *users) handle(kind pluginJobs, number int) error {
	name := fmt.Sprintf("%s-%d", kind.name, number)
	versions := u.witness.Versions("Job", name)
	if len(versions) == 0 || u.done[name] >= kind.hand.steps() {
		return nil
	}
	last := versions[len(versions)-1]
	job, ok := last.beside.(*batchv1alpha1.Job)
	if !ok {
		return fmt.Errorf("it is a %T", last.beside)
	}
	if kind.hand == resumes {
		return u.resume(job)
	}
	if kind.hand == renews && last.deleted {
		u.done[name]++
		return u.TryApply(kind.yaml(number))
	}
	if u.done[name] == 0 && job.Status.State.Phase == batchv1alpha1.Running {
		u.done[name]++
		return u.Client.Delete(u.Context, job.DeepCopy())
	}
	return nil
}

// resume aborts a running job and then resumes it, until it runs again.
func (u *users) resume(job *batchv1alpha1.Job) error {
	const runs, aborted = batchv1alpha1.Running, batchv1alpha1.Aborted
	switch phase, step := job.Status.State.Phase, u.done[job.Name]; {
	case step == 0 && phase == runs:
		return u.command(job, batchv1alpha1.AbortJobAction)
	case step == 1 && phase == aborted:
		return u.command(job, batchv1alpha1.ResumeJobAction)
	case step == 0 && phase == aborted, step == 1 && phase == runs:
		u.done[job.Name]++
		delete(u.asked, job.Name)
	}
	return nil
}

// command requests an action. It repeats a request without an effect: a Command is executed at most once, and is lost if the controllers
// that took it end.
func (u *users) command(job *batchv1alpha1.Job, action batchv1alpha1.Action) error {
	const again = 5 * time.Second
	if asked, ok := u.asked[job.Name]; ok && time.Since(asked) < again {
		return nil
	}
	name := strings.ToLower(fmt.Sprintf("%s-%s", action, job.Name))
	u.asked[job.Name] = time.Now() // applying a Command that was not taken yet changes nothing
	return u.TryApply(fmt.Sprintf(`
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: %s}
action: %s
target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: %s, uid: %s}
`, name, action, job.Name, job.UID))
}

// atEnd returns nil if the jobs of the kind are in the correct final state.
func (j pluginJobs) atEnd(jobs []batchv1alpha1.Job) error {
	if !j.gone {
		return j.check(jobs)
	}
	for i := range jobs {
		if strings.HasPrefix(jobs[i].Name, j.name+"-") {
			return fmt.Errorf("%s is there still, %s", jobs[i].Name, jobs[i].Status.State.Phase)
		}
	}
	return nil
}

// tidy returns nil if each object in the namespace belongs to an existing job. Each job must have exactly the objects that its plugins, its
// volumes and its phase require.
func tidy(s *witness) error {
	jobs := s.Jobs()
	owners, wanted := map[types.UID]bool{}, map[string]types.UID{}
	needed := map[string]bool{}
	for i := range jobs {
		owners[jobs[i].UID] = true
		for name, need := range belongings(&jobs[i]) {
			wanted[name], needed[name] = jobs[i].UID, need
		}
	}
	var wrong []string
	for _, name := range s.There() {
		if o := s.Newest(name); o != nil { // otherwise it was deleted at this moment
			wrong = append(wrong, strange(name, o, owners, wanted[name])...)
		}
		delete(needed, name)
	}
	for name, need := range needed {
		if need {
			wrong = append(wrong, name+" is not there")
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return errors.New(strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	return nil
}

// strange returns what is wrong with an existing object, given the jobs, and the job that requires it.
func strange(name string, o client.Object, jobs map[types.UID]bool, wantedBy types.UID) []string {
	owner := metav1.GetControllerOf(o)
	switch pod, ok := o.(*corev1.Pod); {
	case name == "ConfigMap/kube-root-ca.crt" || name == "PersistentVolumeClaim/shared" || strings.HasPrefix(name, "Job/"):
		return nil
	case owner == nil || len(o.GetOwnerReferences()) != 1:
		return []string{fmt.Sprintf("%s has the owners %v", name, o.GetOwnerReferences())}
	case ok && jobs[owner.UID] && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed):
		return nil // it has ended, and is kept for its logs
	case wantedBy != owner.UID:
		return []string{fmt.Sprintf("%s is there, of %s %s", name, owner.Name, owner.UID)}
	}
	return nil
}

// sawAll waits until the witness has seen exactly the existing objects. Then its memory is complete.
func (w *world) sawAll(s *witness) {
	w.t.Helper()
	w.Wait("the witness has seen everything", func() error {
		there := map[string]bool{}
		for _, list := range besideKinds() {
			if err := w.list(list); err != nil {
				return err
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			for _, item := range items {
				o, ok := item.(client.Object)
				if !ok {
					return fmt.Errorf("%T holds a %T", list, item)
				}
				name := nameOf(o)
				there[name] = true
				if seen := s.Newest(name); seen == nil || seen.GetResourceVersion() != o.GetResourceVersion() {
					return fmt.Errorf("the last version of %s was not seen", name)
				}
			}
		}
		for _, name := range s.There() {
			if !there[name] && !strings.HasPrefix(name, "Pod/") { // Report checks pods
				return fmt.Errorf("%s is gone, and was not seen to go", name)
			}
		}
		return tidy(s)
	})
}

// belongings returns the objects, as KIND/NAME, that a job without changes may have. true means that it must have the object.
func belongings(job *batchv1alpha1.Job) map[string]bool {
	runs := job.Status.State.Phase == batchv1alpha1.Running
	out := map[string]bool{}
	for i, v := range job.Spec.Volumes {
		if v.VolumeClaim != nil {
			out[fmt.Sprintf("PersistentVolumeClaim/%s", job.Spec.Volumes[i].VolumeClaimName)] = true
		}
	}
	_, ssh := job.Spec.Plugins["ssh"]
	if secret := job.Name + "-ssh"; ssh && (runs || job.Status.ControlledResources["celsius.dev/made.v1.Secret."+secret] == "unknown") {
		out["Secret/"+secret] = runs // its UID cannot be read, so it may exist as long as its job
	}
	if !runs {
		return out
	}
	out["PodGroup/"+objects.GroupName(job)] = true
	if _, ok := job.Spec.Plugins["svc"]; ok {
		out["ConfigMap/"+job.Name+"-svc"], out["Service/"+job.Name], out["NetworkPolicy/"+job.Name] = true, true, true
	}
	if _, ok := job.Spec.Plugins["ray"]; ok {
		out["Service/"+job.Name+"-head-svc"] = true
	}
	for i := range job.Spec.Tasks {
		for n := range int(job.Spec.Tasks[i].Replicas) {
			out["Pod/"+objects.PodName(job.Name, job.Spec.Tasks[i].Name, n)] = true
		}
	}
	return out
}

// life contains all versions of one job, from its creation on.
type life []*batchv1alpha1.Job

// lives returns the lives of all jobs that ever existed, by UID.
func (s *witness) lives() map[types.UID]life {
	out := map[types.UID]life{}
	for _, name := range s.Names("Job") {
		for _, at := range s.Versions("Job", name) {
			if job, ok := at.beside.(*batchv1alpha1.Job); ok {
				out[job.UID] = append(out[job.UID], job)
			}
		}
	}
	return out
}

func latest(lives map[types.UID]life) (out []batchv1alpha1.Job) {
	for _, l := range lives {
		out = append(out, *l[len(l)-1])
	}
	return out
}

// phases returns the phases of a job, with their reasons.
func (l life) phases() []string {
	var out []string
	was := batchv1alpha1.JobPhase("")
	for _, job := range l {
		is := job.Status.State
		if is.Phase == was {
			continue
		}
		was = is.Phase
		text := string(is.Phase)
		if waits := is.Phase == batchv1alpha1.Pending || is.Phase == batchv1alpha1.Running; !waits && is.Reason != "" {
			text += ":" + is.Reason
		}
		out = append(out, text)
	}
	return out
}

// checkPaths compares the phases of the jobs with the paths that the table defines.
func (j pluginJobs) checkPaths(t *testing.T, lives map[types.UID]life) {
	t.Helper()
	machine, issues := statemachines.Default("job")
	if machine == nil {
		t.Fatal(issues)
	}
	arrows := map[string]bool{}
	for _, a := range machine.Arrows() {
		arrows[a.From+" "+a.To] = true
	}
	const pending = "Pending " // it was never written if the controllers ended before, and the job ran by then
	path := regexp.MustCompile("^" + strings.TrimPrefix(j.path, pending) + "$")
	n := 0
	for _, l := range lives {
		job := l[len(l)-1]
		if !strings.HasPrefix(job.Name, j.name+"-") {
			continue
		}
		n++
		if text := strings.Join(l.phases(), " "); !path.MatchString(strings.TrimPrefix(text, pending)) {
			t.Errorf("job %s went through %s; want %s", job.Name, text, j.path)
		}
		l.check(t, arrows)
		for key := range job.Status.ControlledResources {
			if !j.gone && (strings.HasPrefix(key, "celsius.dev/kill") || strings.HasPrefix(key, "celsius.dev/restart")) {
				t.Errorf("job %s owes %s at its end", job.Name, key)
			}
		}
	}
	if want := map[bool]int{true: 2, false: 1}[j.hand == renews] * j.count; n != want {
		t.Errorf("there were %d jobs %s; want %d", n, j.name, want)
	}
}

// check fails the test if the job changed its phase in a way that no row of the table permits. It also fails if the number of restarts is
// wrong.
func (l life) check(t *testing.T, arrows map[string]bool) {
	t.Helper()
	job, restarts, was := l[len(l)-1], int32(0), ""
	for _, phase := range l.phases() {
		is, _, _ := strings.Cut(phase, ":")
		if is == string(batchv1alpha1.Restarting) {
			restarts++
		}
		if was != "" && !arrows[was+" "+is] {
			t.Errorf("job %s went from %s to %s, which the table does not lead to", job.Name, was, is)
		}
		was = is
	}
	if job.Status.RetryCount != restarts {
		t.Errorf("job %s was restarted %d times, and counts %d", job.Name, restarts, job.Status.RetryCount)
	}
}

// checkTold checks for each pod that ever existed what its plugins must add to it, at its creation and at its start.
func (w *world) checkTold(s *witness, lives map[types.UID]life) {
	w.t.Helper()
	var wrong []string
	plugins := map[string]int{}
	for _, p := range s.moments() {
		owner := metav1.GetControllerOf(p.pod)
		if owner == nil || len(lives[owner.UID]) == 0 {
			wrong = append(wrong, fmt.Sprintf("pod %s has no job", p.pod.Name))
			continue
		}
		p.job = lives[owner.UID][len(lives[owner.UID])-1]
		for name := range p.job.Spec.Plugins {
			plugins[name]++
		}
		for _, lack := range p.check() {
			wrong = append(wrong, fmt.Sprintf("pod %s, in version %d of the store: %s", p.pod.Name, p.version, lack))
		}
	}
	for name := range (&told{}).byPlugin() {
		if plugins[name] == 0 {
			wrong = append(wrong, "no pod had the plugin "+name)
		}
	}
	if len(wrong) > 0 {
		w.t.Errorf("of what pods are told, %d things are wrong:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 40)], "\n"))
	}
	w.t.Logf("pods looked at, when they are made and when they start, by plugin: %v", plugins)
}

// moments returns each pod at its creation, and at its start.
func (s *witness) moments() (out []*told) {
	made, started := map[types.UID]bool{}, map[types.UID]bool{}
	for _, at := range s.inOrder() {
		switch p := at.pod; {
		case p == nil || at.deleted:
			continue
		case !made[p.UID]:
			made[p.UID] = true
		case !started[p.UID] && p.Status.StartTime != nil && p.DeletionTimestamp == nil:
			started[p.UID] = true
		default:
			continue
		}
		out = append(out, &told{witness: s, pod: at.pod, version: at.version})
	}
	return out
}

// checkMade fails the test if an object was created twice for an existing job. Objects that are deleted with the pods may be created once
// for each kill, and once before. Claims may be created once. Controllers may not know yet that a job was deleted, and create objects again
// that the API server deleted with it. These objects are deleted as well.
func (w *world) checkMade(s *witness, lives map[types.UID]life) {
	w.t.Helper()
	gone := s.jobsGone()
	for _, list := range madeKinds() {
		kind := strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
		for _, name := range s.Names(kind) {
			for owner, ones := range s.madeFor(kind, name, gone) {
				l := lives[owner]
				if len(l) == 0 {
					w.t.Errorf("%s %s was made for %s, which nobody has seen", kind, name, owner)
					continue
				}
				most := 1
				if kind != "PersistentVolumeClaim" {
					most += int(l[len(l)-1].Status.Version)
				}
				if len(ones) > most {
					w.t.Errorf("%s %s was made %d times for one job; want %d at most", kind, name, len(ones), most)
				}
			}
		}
	}
}

// madeFor returns the created objects of a name, by the jobs for which they were created while these existed.
func (s *witness) madeFor(kind, name string, gone map[types.UID]uint64) map[types.UID]map[types.UID]bool {
	out := map[types.UID]map[types.UID]bool{}
	for _, at := range s.Versions(kind, name) {
		owner := metav1.GetControllerOf(at.beside)
		if owner == nil {
			continue
		}
		if since, ok := gone[owner.UID]; ok && at.version > since {
			continue
		}
		if out[owner.UID] == nil {
			out[owner.UID] = map[types.UID]bool{}
		}
		out[owner.UID][at.beside.GetUID()] = true
	}
	return out
}

// jobsGone returns the version of the store in which each deleted job was deleted.
func (s *witness) jobsGone() map[types.UID]uint64 {
	out := map[types.UID]uint64{}
	for _, name := range s.Names("Job") {
		for _, at := range s.Versions("Job", name) {
			if at.deleted {
				out[at.beside.GetUID()] = at.version
			}
		}
	}
	return out
}
