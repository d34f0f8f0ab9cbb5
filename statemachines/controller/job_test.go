package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

func trainJob(t *testing.T, policies string) *batchv1alpha1.Job {
	t.Helper()
	return parseJob(t, fmt.Sprintf(train, policies))
}

// TestWaits checks the state of a waiting job.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name            string
		prepare         func(s *stage, job *batchv1alpha1.Job)
		after           func(s *stage)
		reason, message string
	}{
		{
			name:    "no queue",
			prepare: func(_ *stage, job *batchv1alpha1.Job) { job.Spec.Queue = "gpu" },
			reason:  "QueueNotFound", message: "there is no queue gpu; create it, or create the job again in another queue",
		},
		{
			name:   "not let in",
			reason: "PodGroupPending", message: "PodGroup train-job-uid waits to be let into queue default",
		},
		{
			name: "closed queue",
			prepare: func(s *stage, _ *batchv1alpha1.Job) {
				queue := s.queue("default")
				queue.Status.State = schedulingv1beta1.QueueStateClosed
				if err := s.api.Status().Update(context.Background(), queue); err != nil {
					s.t.Fatal(err)
				}
			},
			reason: "QueueClosed", message: "queue default is Closed; the job waits until it is opened",
		},
		{
			name: "unschedulable",
			after: func(s *stage) {
				for _, g := range s.groups() {
					g.Status.Phase = schedulingv1beta1.PodGroupInqueue
					g.Status.Conditions = []schedulingv1beta1.PodGroupCondition{{
						Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "NotEnoughResources",
						Message: "3/3 tasks in gang unschedulable",
					}}
					if err := s.api.Update(context.Background(), &g); err != nil {
						s.t.Fatal(err)
					}
				}
				s.settle()
			},
			reason: "Unschedulable", message: "3/3 tasks in gang unschedulable",
		},
		{
			name: "starting",
			after: func(s *stage) {
				s.letIn(schedulingv1beta1.PodGroupInqueue)
				s.settle()
			},
			reason: "PodsNotRunning", message: "waits until 3 of its pods run",
		},
		{
			name: "no claim",
			prepare: func(_ *stage, job *batchv1alpha1.Job) {
				job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/data", VolumeClaimName: "data"}}
			},
			reason: "ClaimNotFound", message: "spec.volumes[0].volumeClaimName: there is no PersistentVolumeClaim data in namespace team",
		},
		{
			name: "a pod's name is taken",
			prepare: func(s *stage, _ *batchv1alpha1.Job) {
				s.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-ps-0"}})
			},
			after:  refusedOnce,
			reason: "FailedCreate", message: "make pod train-ps-0: a pod of that name belongs to another owner",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{}, openQueue())
			job := trainJob(t, "")
			if c.prepare != nil {
				c.prepare(s, job)
			}
			s.add(job)
			s.settle()
			if c.after != nil {
				c.after(s)
			}
			state := s.job().Status.State
			got := []string{string(state.Phase), state.Reason, state.Message}
			if diff := cmp.Diff([]string{"Pending", c.reason, c.message}, got); diff != "" {
				t.Errorf("state of the job (-want +got):\n%s", diff)
			}
		})
	}
}

// refusedOnce creates the pods of a job once; one of them is refused.
func refusedOnce(s *stage) {
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.round()
}

// TestRefused checks that a job whose pod is refused repeatedly is terminated. Errors of the server do not terminate a job.
func TestRefused(t *testing.T) {
	s := newStage(t, Options{MaxRequeue: 2}, openQueue(), trainJob(t, ""))
	s.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-ps-0"}})
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	for range 3 {
		s.round()
	}
	s.settle()
	if got := s.job().Status.State; got.Phase != batchv1alpha1.Terminated || got.Reason != objects.RefusedTooOften ||
		!strings.Contains(got.Message, "refused 3 times: make pod train-ps-0: a pod of that name belongs to another owner") {
		t.Errorf("the job is %+v, want it Terminated, with the reason", got)
	}
	if !s.told("RefusedTooOften: refused 3 times: make pod train-ps-0: a pod of that name belongs to another owner") {
		t.Errorf("nobody was told why: %q", s.lines)
	}
	for _, err := range []error{
		apierrors.NewInternalError(errTrouble), apierrors.NewTooManyRequests("later", 1), errBehind,
		context.DeadlineExceeded,
	} {
		if isRefusal(err) {
			t.Errorf("%v is taken for a refusal of the object", err)
		}
	}
}

// TestTTL checks that a finished job is deleted when its time is over, and not before. An aborted job stays.
func TestTTL(t *testing.T) {
	finish := func(s *stage) { s.play("train", corev1.PodSucceeded, 0) }
	for _, c := range []struct {
		name string
		end  func(s *stage)
		gone bool
	}{
		{"completed", finish, true},
		{"aborted", func(s *stage) {
			s.commandJob("AbortJob")
			s.release()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := trainJob(t, "")
			job.Spec.TTLSecondsAfterFinished = new(int32(60))
			s := newStage(t, Options{}, openQueue(), job)
			runs(s)
			c.end(s)
			s.settle()
			s.now = s.now.Add(57 * time.Second) // settle may have let one second pass before; less than a second counts as soon
			s.settle()
			s.job() // it still exists
			s.now = s.now.Add(4 * time.Second)
			s.settle()
			err := s.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "train"}, &batchv1alpha1.Job{})
			if gone := apierrors.IsNotFound(err); gone != c.gone {
				t.Errorf("gone: %v, want %v", gone, c.gone)
			}
		})
	}
}

// TestCountsAreWrittenOnceASecond checks that counts of pods are written at the earliest one second after the last write. A new phase is
// written at once.
func TestCountsAreWrittenOnceASecond(t *testing.T) {
	job := trainJob(t, "")
	s := newStage(t, Options{}, openQueue(), job)
	runs(s)
	s.settle()
	before := s.job().Status
	s.play("train-worker-0", corev1.PodSucceeded, 0)
	s.round()
	s.now = s.now.Add(countsEvery - time.Millisecond)
	s.round()
	if st := s.job().Status; st.Succeeded != before.Succeeded {
		t.Errorf("%d pods succeeded, written at once", st.Succeeded)
	}
	s.now = s.now.Add(time.Millisecond)
	s.round()
	if st := s.job().Status; st.Succeeded != before.Succeeded+1 {
		t.Errorf("%d pods succeeded, and a second is over", st.Succeeded)
	}
	s.play("train", corev1.PodSucceeded, 0)
	s.round()
	if st := s.job().Status; st.State.Phase != batchv1alpha1.Completed && st.State.Phase != batchv1alpha1.Completing {
		t.Errorf("the job is %s, and all of its pods have ended", st.State.Phase)
	}
}

// TestTTLRaised extends the life of a job while the cache shows the expired one. The job stays.
func TestTTLRaised(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.TTLSecondsAfterFinished = new(int32(0))
	job.Status.State.Phase = batchv1alpha1.Completed
	s := newStage(t, Options{}, openQueue(), job)
	r, err := newJobs(s.parts)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{job: s.job(), rec: s.parts.memory.of(client.ObjectKeyFromObject(job), job.UID)}
	raised := s.job()
	raised.Spec.TTLSecondsAfterFinished = new(int32(3600))
	if err := s.api.Update(t.Context(), raised); err != nil {
		t.Fatal(err)
	}
	if wait, err := r.expire(t.Context(), w); err != nil || wait != catchUp || s.job().DeletionTimestamp != nil {
		t.Errorf("it is looked at after %s, %v", wait, err)
	}
}

// line records when the items that are added to a queue are due.
type line struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	due map[string]time.Duration
}

func (l *line) AddAfter(r reconcile.Request, after time.Duration) { l.due[r.Name] = after }

// TestPodsAreGathered checks when a job with a changed pod is reconciled: at once or, after a recent reconcile, when the pause is over.
func TestPodsAreGathered(t *testing.T) {
	job, other := trainJob(t, ""), trainJob(t, "")
	other.Name, other.UID = "other", "other-uid"
	s := newStage(t, Options{}, openQueue(), job, other)
	r, err := newJobs(s.parts)
	if err != nil {
		t.Fatal(err)
	}
	podOf := func(of client.Object, uid types.UID, kind string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: batchv1alpha1.GroupVersion.String(), Kind: kind, Name: of.GetName(), UID: uid, Controller: new(true)},
		}
		return pod
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(50 * time.Millisecond)
	for what, c := range map[string]struct {
		pod  *corev1.Pod
		want map[string]time.Duration
	}{
		"looked at a moment ago":      {podOf(job, job.UID, "Job"), map[string]time.Duration{"train": leastPause - 50*time.Millisecond}},
		"never looked at":             {podOf(other, other.UID, "Job"), map[string]time.Duration{"other": 0}},
		"of an earlier job, as named": {podOf(job, "earlier", "Job"), map[string]time.Duration{"train": 0}},
		"no job's":                    {podOf(job, job.UID, "CronJob"), map[string]time.Duration{}},
	} {
		l := &line{due: map[string]time.Duration{}}
		h := r.podHandler()
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: c.pod, ObjectNew: c.pod}, l)
		if diff := cmp.Diff(c.want, l.due); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	rec := s.parts.memory.of(client.ObjectKeyFromObject(job), job.UID)
	if rec.version == "" {
		t.Error("what is remembered of the job is lost with a pod of one before it")
	}
	for pods, want := range map[int]time.Duration{100: leastPause, 3000: 3000 * pauseAPod, 1_000_000: mostPause} {
		rec.has(pods)
		if is := s.parts.memory.untilNext(client.ObjectKeyFromObject(job), job.UID, rec.looked); is != want {
			t.Errorf("a job of %d pods is looked at again after %s, want %s", pods, is, want)
		}
	}
}

// TestTimeout checks a policy with a timeout: it acts when its event has lasted that long, and not if the event is over by then.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		runs  bool
		want  batchv1alpha1.JobPhase
	}{
		{"too early", 4 * time.Minute, false, batchv1alpha1.Pending},
		{"due", 6 * time.Minute, false, batchv1alpha1.Aborting},
		{"over", 6 * time.Minute, true, batchv1alpha1.Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{}, openQueue(), trainJob(t, "{event: PodPending, action: AbortJob, timeout: 5m}"))
			s.settle()
			s.letIn(schedulingv1beta1.PodGroupInqueue)
			s.settle()
			if c.runs {
				s.play("train", corev1.PodRunning, 0)
			}
			s.now = s.now.Add(c.after)
			s.newController()
			s.settle()
			if got := s.job().Status.State.Phase; got != c.want {
				t.Errorf("the job is %s, want %s", got, c.want)
			}
		})
	}
}

// TestTakenOver checks that running jobs of Volcano are not changed, with either name of their PodGroup.
func TestTakenOver(t *testing.T) {
	for _, group := range []string{"train", "train-job-uid"} {
		t.Run(group, func(t *testing.T) {
			job := trainJob(t, "{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}")
			at := metav1.NewTime(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
			job.Status = batchv1alpha1.JobStatus{
				State: batchv1alpha1.JobState{Phase: batchv1alpha1.Running, LastTransitionTime: at}, MinAvailable: 3, Running: 3,
				Version: 1, RetryCount: 1,
				TaskStatusCount: map[string]batchv1alpha1.TaskState{
					"ps":     {Phase: map[corev1.PodPhase]int32{"Running": 1}},
					"worker": {Phase: map[corev1.PodPhase]int32{"Running": 2}},
				},
				ControlledResources: map[string]string{"plugin-svc": "svc"},
				Conditions: []batchv1alpha1.JobCondition{
					{Status: batchv1alpha1.Pending, LastTransitionTime: &at},
					{Status: batchv1alpha1.Running, LastTransitionTime: &at},
				},
			}
			s := newStage(t, Options{}, openQueue(), job)
			pg := objects.PodGroup(job, nil, func(string) int32 { return 0 })
			pg.Name, pg.Status.Phase = group, schedulingv1beta1.PodGroupRunning
			s.add(pg)
			for i := range job.Spec.Tasks {
				for n := range int(job.Spec.Tasks[i].Replicas) {
					pod, err := objects.Pod(job, objects.PodPlan{Task: &job.Spec.Tasks[i], Index: n, Group: group})
					if err != nil {
						t.Fatal(err)
					}
					pod.Status.Phase = corev1.PodRunning
					s.add(pod)
				}
			}
			s.settle() // the queue is counted
			calls, before := s.calls, s.job().DeepCopy()
			s.newController()
			s.settle()
			if diff := cmp.Diff(before, s.job()); diff != "" || s.calls != calls || len(s.made) != 0 {
				t.Errorf("the job was changed, or something was written (%d calls, made %v):\n%s", s.calls-calls, s.made, diff)
			}
			if before.Status.Version != 1 || before.Status.RetryCount != 1 || len(before.Status.Conditions) != 2 {
				t.Errorf("counted again: %+v", before.Status)
			}
			s.play("train", corev1.PodSucceeded, 0)
			s.settle()
			if got := s.job().Status.State.Phase; got != batchv1alpha1.Completed {
				t.Errorf("the job ends %s, want Completed", got)
			}
		})
	}
}

// TestForeign checks that jobs of other schedulers are ignored.
func TestForeign(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.SchedulerName = "default-scheduler"
	s := newStage(t, Options{}, openQueue(), job)
	s.settle()
	if got := s.job().Status.State.Phase; got != "" || len(s.groups()) != 0 {
		t.Errorf("touched: phase %q, %d PodGroups", got, len(s.groups()))
	}
}

// TestNotYet checks that each field that is not supported yet is reported once.
func TestNotYet(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.NetworkTopology = &batchv1alpha1.NetworkTopologySpec{Mode: "hard"}
	s := newStage(t, Options{}, openQueue(), job)
	s.settle()
	for _, want := range []string{
		"train Warning NotYetHonoured: spec.networkTopology: ",
	} {
		if !s.told(want) {
			t.Errorf("no event %q in %q", want, s.lines)
		}
	}
	if s.told("partitionPolicy") {
		t.Errorf("told of what the job does not say: %q", s.lines)
	}
}

// TestBehind checks that a job is skipped while its cached copy is older than the last write.
func TestBehind(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, ""))
	s.settle()
	key := types.NamespacedName{Namespace: namespace, Name: "train"}
	s.parts.memory.of(key, "job-uid").version = "999999"
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.round()
	if got := len(s.pods()); got != 0 {
		t.Errorf("%d pods were made for a stale job", got)
	}
	s.newController()
	s.settle()
	if got := len(s.pods()); got != 3 {
		t.Errorf("%d pods, want 3", got)
	}
}

// TestQuotaFrees checks that a job with refused pods is retried when a quota of its namespace has more free resources. The retry does not
// wait for the back-off, and is not counted.
func TestQuotaFrees(t *testing.T) {
	t.Parallel()
	quota := func(hard, used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "few"},
			Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}, Used: corev1.ResourceList{
					corev1.ResourcePods: resource.MustParse(used),
				},
			},
		}
	}
	for _, c := range []struct {
		name     string
		was, is  *corev1.ResourceQuota
		expected bool
	}{
		{"it was raised", quota("1", "1"), quota("3", "1"), true},
		{"less of it is used", quota("3", "3"), quota("3", "2"), true},
		{"more of it is used", quota("3", "2"), quota("3", "3"), false},
		{"nothing is new", quota("3", "2"), quota("3", "2"), false},
	} {
		if got := quotaFrees(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.expected {
			t.Errorf("%s: %v, want %v", c.name, got, c.expected)
		}
	}
	s := newStage(t, Options{MaxRequeue: 2}, openQueue(), trainJob(t, ""))
	s.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-ps-0"}}) // another owner has a pod of this name
	s.settle()
	jobs := s.reconcilers["job"].(*jobs)
	if got := jobs.refusedIn(t.Context(), quota("3", "1")); len(got) != 0 {
		t.Errorf("a job that was refused nothing is tried: %v", got)
	}
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.round()
	for range 5 {
		want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "train"}}}
		if diff := cmp.Diff(want, jobs.refusedIn(t.Context(), quota("3", "1"))); diff != "" {
			t.Fatalf("who is tried again (-want +got):\n%s", diff)
		}
		s.round()
	}
	if got := s.job().Status.State; got.Reason != failedCreate {
		t.Errorf("tries that a quota gave rise to count as refusals: the job is %+v", got)
	}
}

// TestDependsOn checks that tasks start in their order, also after a restart, and that the job states which task waits for which.
func TestDependsOn(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.Tasks[1].DependsOn = &batchv1alpha1.DependsOn{Name: []string{"ps"}}
	s := newStage(t, Options{}, openQueue(), job)
	names := func() (out []string) {
		for _, pod := range s.pods() {
			out = append(out, pod.Name)
		}
		return out
	}
	for turn := range 2 {
		s.settle()
		if got := s.groups()[0].Spec; got.MinMember != 1 || len(got.MinTaskMember) != 1 {
			t.Errorf("turn %d: the gang is %d of %v, and workers are to come later", turn, got.MinMember, got.MinTaskMember)
		}
		s.letIn(schedulingv1beta1.PodGroupInqueue)
		s.settle()
		if diff := cmp.Diff([]string{"train-ps-0"}, names()); diff != "" {
			t.Errorf("turn %d: before ps runs (-want +got):\n%s", turn, diff)
		}
		state := s.job().Status.State
		if want := "task worker waits for task ps, of which 0 of 1 pods are ready"; state.Reason != "TasksWait" || state.Message != want {
			t.Errorf("turn %d: it says %s: %s", turn, state.Reason, state.Message)
		}
		s.play("ps", corev1.PodSucceeded, 0) // faster than any reconcile
		s.settle()
		if diff := cmp.Diff([]string{"train-ps-0", "train-worker-0", "train-worker-1"}, names()); diff != "" {
			t.Errorf("turn %d: once ps is done (-want +got):\n%s", turn, diff)
		}
		s.play("worker", corev1.PodRunning, 0)
		s.settle()
		if got := s.job().Status.State; got.Phase != batchv1alpha1.Running || got.Reason == "TasksWait" {
			t.Errorf("turn %d: the job is %+v", turn, got)
		}
		if turn == 0 {
			s.commandJob("RestartJob")
			s.release()
			s.settle()
		}
	}
	s.play("worker", corev1.PodSucceeded, 0)
	s.settle()
	if got := s.job().Status.State.Phase; got != batchv1alpha1.Completed {
		t.Errorf("the job is %s", got)
	}
}

// TestClaims checks that a claim is created once, is named in the job and mounted, and stays when the job restarts or ends.
func TestClaims(t *testing.T) {
	job := trainJob(t, "")
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	job.Spec.Volumes = []batchv1alpha1.VolumeSpec{
		{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: size}}},
		{MountPath: "/data", VolumeClaimName: "data"},
	}
	s := newStage(t, Options{}, openQueue(), job)
	s.add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}})
	claims := func() (out []string) {
		list := &corev1.PersistentVolumeClaimList{}
		if err := s.api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			out = append(out, list.Items[i].Name+" "+string(list.Items[i].UID))
		}
		return out
	}
	runs(s)
	made := s.job().Spec.Volumes[0].VolumeClaimName
	if !strings.HasPrefix(made, "train-pvc-") || len(claims()) != 2 {
		t.Errorf("the claim is called %q, and there are %v", made, claims())
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := s.api.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: made}, claim); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(claim, s.job()) || claim.Spec.Resources.Requests.Storage().String() != "1Gi" {
		t.Errorf("the claim is %+v", claim)
	}
	for _, pod := range s.pods() {
		var paths []string
		for i, m := range pod.Spec.Containers[0].VolumeMounts {
			paths = append(paths, m.MountPath+" "+pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
		}
		if diff := cmp.Diff([]string{"/scratch " + made, "/data data"}, paths); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod.Name, diff)
		}
	}
	before := claims()
	s.commandJob("RestartJob")
	again(s)
	s.play("train", corev1.PodSucceeded, 0)
	s.settle()
	if diff := cmp.Diff(before, claims()); diff != "" {
		t.Errorf("claims after a restart and the end (-want +got):\n%s", diff)
	}
	if got := s.job().Status; got.ControlledResources[claimKey+made] != made || got.State.Phase != batchv1alpha1.Completed {
		t.Errorf("the job is %s and has %v", got.State.Phase, got.ControlledResources)
	}
}

// TestClaimTaken checks that a claim of another owner stays unchanged, and that the job reports it.
func TestClaimTaken(t *testing.T) {
	job := trainJob(t, "")
	job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/data", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}}}
	s := newStage(t, Options{}, openQueue(), job)
	name := objects.Claim(job, &job.Spec.Volumes[0]).Name
	s.add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	refusedOnce(s)
	want := "spec.volumes[0].volumeClaim: PersistentVolumeClaim " + name + " belongs to another owner"
	if got := s.job().Status.State; got.Reason != "PVCError" || got.Message != want || !s.told("train Warning PVCError") {
		t.Errorf("the job says %s: %s\n%v", got.Reason, got.Message, s.lines)
	}
}

// TestAPodThatWentUnseenIsMadeAgain has a created pod that is deleted before the cache shows it. For a while it is assumed to exist. The
// job is reconciled when that time is over, although no event occurs.
func TestAPodThatWentUnseenIsMadeAgain(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, ""))
	look := func() time.Duration {
		t.Helper()
		result, err := s.reconcilers["job"].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.job())})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for range 20 {
		s.letIn(schedulingv1beta1.PodGroupInqueue)
		if look(); len(s.pods()) > 0 {
			break
		}
		s.now = s.now.Add(countsEvery)
	}
	made := len(s.pods())
	for _, pod := range s.pods() {
		if err := s.api.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	s.release()
	for spent := time.Duration(0); ; {
		wait := look()
		if len(s.pods()) == made {
			break
		}
		if spent += wait; wait == 0 || spent > 2*createdFor {
			t.Fatalf("%d of %d pods are there, and the job is to be looked at after %s, %s later", len(s.pods()), made, wait, spent)
		}
		s.now = s.now.Add(wait)
	}
}
