package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// remedyCase is a message that asks the reader to change something, with the change. The tests of this file run the controllers before and
// after the change. cmd/celsius/testdata/fields.txt names them.
type remedyCase struct {
	// words is the remedy in the words of the message.
	words string
	// mistake changes the objects before the controllers run.
	mistake func(s *stage, o *remedyObjects)
	// remedy changes the cluster as the words state; nil: new objects are the remedy.
	remedy func(s *stage, o *remedyObjects)
	// renew changes new objects that replace those with the mistake, as the words state. They run in a new cluster.
	renew func(s *stage, o *remedyObjects)
}

// remedyObjects are the objects of a case.
type remedyObjects struct {
	job *batchv1alpha1.Job
	// limit is how many CPUs the namespace may use, and used is how many other pods use.
	limit, used string
	// missing are names of objects that pods name but that do not exist.
	missing []string
	// permitsHost states whether the namespace permits pods with host network.
	permitsHost bool
}

// refusal refuses pods as the admission plugins of Kubernetes do, according to the objects of a case.
func (o *remedyObjects) refusal(obj client.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	why, c := "", &pod.Spec.Containers[0]
	sum := c.Resources.Requests.Cpu().DeepCopy()
	sum.Add(resource.MustParse(o.used))
	switch {
	case slices.Contains(o.missing, pod.Spec.ServiceAccountName):
		why = fmt.Sprintf("error looking up service account team/%[1]s: serviceaccount %[1]q not found", pod.Spec.ServiceAccountName)
	case slices.Contains(o.missing, pod.Spec.PriorityClassName):
		why = fmt.Sprintf("no PriorityClass with name %s was found", pod.Spec.PriorityClassName)
	case pod.Spec.HostNetwork && !o.permitsHost:
		why = `violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`
	case c.Resources.Requests.Cpu().IsZero():
		why = "failed quota: team-quota: must specify requests.cpu for: main"
	case sum.Cmp(resource.MustParse(o.limit)) > 0:
		why = fmt.Sprintf("exceeded quota: team-quota, requested: requests.cpu=%s, used: requests.cpu=%s, limited: requests.cpu=%s",
			c.Resources.Requests.Cpu(), o.used, o.limit)
	case c.Resources.Limits.Cpu().Cmp(resource.MustParse("8")) > 0:
		why = fmt.Sprintf("maximum cpu usage per Container is 8, but limit is %s", c.Resources.Limits.Cpu())
	default:
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New(why))
}

// requests sets the CPU request of each container of the job.
func (o *remedyObjects) requests(cpu string) {
	for i := range o.job.Spec.Tasks {
		o.job.Spec.Tasks[i].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
}

// template changes the pod templates of the job.
func (o *remedyObjects) template(change func(*corev1.PodSpec)) {
	for i := range o.job.Spec.Tasks {
		change(&o.job.Spec.Tasks[i].Template.Spec)
	}
}

// remedyStage runs the controllers on the objects of a case until the job has its pods, or they are refused.
func remedyStage(t *testing.T, change func(*stage, *remedyObjects)) (*stage, *remedyObjects) {
	t.Helper()
	o := &remedyObjects{job: trainJob(t, ""), limit: "100", used: "0"}
	o.requests("1")
	s := newStage(t, Options{}, openQueue())
	if change != nil {
		change(s, o)
	}
	s.refuse = o.refusal
	s.add(o.job)
	return s, o
}

// goOn acts as the scheduler, which admits the job, and runs the controllers, which create its pods.
func (s *stage) goOn() {
	s.t.Helper()
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	for range 5 {
		s.round()
	}
}

// messages returns the texts of the controllers in the job's status and in events.
func (o *remedyObjects) messages(s *stage, since int) string {
	s.t.Helper()
	stored := &batchv1alpha1.Job{}
	if err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(o.job), stored); err != nil {
		s.t.Fatal(err)
	}
	return stored.Status.State.Message + "\n" + strings.Join(s.lines[since:], "\n")
}

func podRemedies() []remedyCase {
	template := func(change func(*corev1.PodSpec)) func(*stage, *remedyObjects) {
		return func(_ *stage, o *remedyObjects) { o.template(change) }
	}
	account := func(s *stage, o *remedyObjects) {
		o.missing = []string{"trainer"}
		template(func(p *corev1.PodSpec) { p.ServiceAccountName = "trainer" })(s, o)
	}
	class := func(s *stage, o *remedyObjects) {
		o.missing = []string{"high"}
		template(func(p *corev1.PodSpec) { p.PriorityClassName = "high" })(s, o)
	}
	full := func(_ *stage, o *remedyObjects) { o.limit, o.used = "14", "12"; o.requests("4") }
	alone := func(_ *stage, o *remedyObjects) { o.limit, o.used = "8", "8"; o.requests("4") }
	host := template(func(p *corev1.PodSpec) { p.HostNetwork = true })
	return []remedyCase{
		{
			words: "ServiceAccount trainer does not exist in the job's namespace; create it", mistake: account,
			remedy: func(_ *stage, o *remedyObjects) { o.missing = nil },
		},
		{
			words: "or change serviceAccountName in the pod template", mistake: account,
			renew: func(s *stage, o *remedyObjects) {
				account(s, o)
				o.template(func(p *corev1.PodSpec) { p.ServiceAccountName = "default" })
			},
		},
		{
			words: "PriorityClass high does not exist; create it", mistake: class,
			remedy: func(_ *stage, o *remedyObjects) { o.missing = nil },
		},
		{
			words: "or change priorityClassName in the job and its pod templates", mistake: class,
			renew: func(s *stage, o *remedyObjects) {
				class(s, o)
				o.template(func(p *corev1.PodSpec) { p.PriorityClassName = "low" })
			},
		},
		{
			words: "wait until other pods of the namespace end", mistake: full,
			remedy: func(_ *stage, o *remedyObjects) { o.used = "0" },
		},
		{words: "request less", mistake: full, renew: func(s *stage, o *remedyObjects) { full(s, o); o.requests("2") }},
		{words: "or raise the quota", mistake: full, remedy: func(_ *stage, o *remedyObjects) { o.limit = "24" }},
		{
			words: "allows less than the job alone needs (the 3 pods that must start together request requests.cpu=12, limited: requests.cpu=8); " +
				"request less, lower minAvailable, or raise the quota",
			mistake: alone,
			remedy:  func(_ *stage, o *remedyObjects) { o.limit, o.used = "12", "0" },
		},
		{
			words:   "must specify requests.cpu for: main; add these requests or limits to the pod template",
			mistake: template(func(p *corev1.PodSpec) { p.Containers[0].Resources = corev1.ResourceRequirements{} }),
			renew:   func(_ *stage, o *remedyObjects) { o.requests("1") },
		},
		{
			words: "Change the pod template", mistake: host,
			renew: template(func(p *corev1.PodSpec) { p.HostNetwork = false }),
		},
		{
			words: "or the pod-security labels of the namespace", mistake: host,
			remedy: func(_ *stage, o *remedyObjects) { o.permitsHost = true },
		},
		{
			words: "Change the amounts in the pod template",
			mistake: template(func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("9")}
			}),
			renew: template(func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("8")}
			}),
		},
		{
			words:   "remove schedulerName from the template",
			mistake: template(func(p *corev1.PodSpec) { p.SchedulerName = "default-scheduler" }),
			renew:   template(func(p *corev1.PodSpec) { p.SchedulerName = "" }),
		},
		{
			words:   "or write celsius",
			mistake: template(func(p *corev1.PodSpec) { p.SchedulerName = "default-scheduler" }),
			renew:   template(func(p *corev1.PodSpec) { p.SchedulerName = "celsius" }),
		},
		{
			words: "there is no queue gpu; create it", mistake: func(_ *stage, o *remedyObjects) { o.job.Spec.Queue = "gpu" },
			remedy: func(s *stage, _ *remedyObjects) {
				s.add(&schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
			},
		},
		{
			words: "or create the job again in another queue", mistake: func(_ *stage, o *remedyObjects) { o.job.Spec.Queue = "gpu" },
			renew: func(_ *stage, o *remedyObjects) { o.job.Spec.Queue = "default" },
		},
		{
			words: "belongs to another owner; delete it", mistake: foreignService,
			remedy: func(s *stage, _ *remedyObjects) {
				if err := s.api.Delete(s.t.Context(), theirService()); err != nil {
					s.t.Fatal(err)
				}
			},
		},
		{
			words: "or call the job something else", mistake: foreignService,
			renew: func(s *stage, o *remedyObjects) {
				foreignService(s, o)
				o.job.Name = "train-again"
			},
		},
	}
}

// theirService returns a Service of another owner, with the name of the job.
func theirService() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: namespace}}
}

func foreignService(s *stage, o *remedyObjects) {
	s.add(theirService())
	o.job.Spec.Plugins = map[string][]string{"svc": nil}
}

// TestRemediesOfJobs runs jobs that cannot make progress until a user changes something. The message of the job states the
// remedy. After the remedy the job has all of its pods, and no message states the remedy again.
func TestRemediesOfJobs(t *testing.T) {
	for _, c := range podRemedies() {
		t.Run(c.words, func(t *testing.T) {
			s, o := remedyStage(t, c.mistake)
			s.goOn()
			if got := o.messages(s, 0); !strings.Contains(got, c.words) {
				t.Fatalf("no message states the remedy:\n%s", got)
			}
			since := len(s.lines)
			if c.remedy != nil {
				c.remedy(s, o)
			} else {
				s, o = remedyStage(t, c.renew)
				since = 0
			}
			s.goOn()
			s.goOn()
			want := 0
			for _, task := range o.job.Spec.Tasks {
				want += int(task.Replicas)
			}
			if got := o.messages(s, since); strings.Contains(got, c.words) || len(s.pods()) != want {
				t.Errorf("after the remedy the job has %d of %d pods, and states:\n%s", len(s.pods()), want, got)
			}
		})
	}
}

// TestRemedyOfImages has pods whose image cannot be pulled. The job names the image. After the remedy the containers run, and the job does
// not name it any more.
func TestRemedyOfImages(t *testing.T) {
	for _, remedy := range []string{"correct the image", "or the access to its registry"} {
		s, o := remedyStage(t, func(_ *stage, o *remedyObjects) {
			o.template(func(p *corev1.PodSpec) { p.Containers[0].Image = "registry.example.com/bert:typo" })
		})
		registry := map[string]bool{"registry.example.com/bert:1": true}
		pull := func() { // as the kubelet does
			for _, pod := range s.pods() {
				status := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name}
				if !registry[pod.Spec.Containers[0].Image] {
					status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
				}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
				if err := s.api.Status().Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			s.settle()
		}
		s.goOn()
		pull()
		if got := o.messages(s, 0); !strings.Contains(got, "cannot pull image registry.example.com/bert:typo (ImagePullBackOff)") ||
			!strings.Contains(got, remedy) {
			t.Fatalf("no message states the remedy %q:\n%s", remedy, got)
		}
		if remedy == "correct the image" { // the API server permits this change of a pod
			for _, pod := range s.pods() {
				pod.Spec.Containers[0].Image = "registry.example.com/bert:1"
				if err := s.api.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			registry[o.job.Spec.Tasks[0].Template.Spec.Containers[0].Image] = true
		}
		since := len(s.lines)
		pull()
		if got := o.messages(s, since); strings.Contains(got, "cannot pull image") {
			t.Errorf("after the remedy %q:\n%s", remedy, got)
		}
	}
}

// TestRemediesOfCronJobs runs CronJobs with a mistake for which an event states the remedy. After the remedy no event states it.
func TestRemediesOfCronJobs(t *testing.T) {
	missed := []string{"12:20 schedule * * * * *", "14:00 resume"}
	stranger := func(s *stage) { // a Job of a user, with the name of the next Job
		due := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
		s.add(&batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("nightly-%d", due.Unix()/60)}})
	}
	suspended := func(spec *batchv1alpha1.CronJobSpec) { spec.Suspend = new(true) }
	for _, c := range []struct {
		words  string
		change func(*batchv1alpha1.CronJobSpec) // the mistake in the spec
		others func(*stage)                     // objects of other owners
		remedy func(*batchv1alpha1.CronJob)
		before []string // actions with the mistake
		after  []string // actions with the remedy
	}{
		{
			words: "120 starts were missed, and the last is made up for; set or lower spec.startingDeadlineSeconds", change: suspended,
			before: missed, remedy: func(c *batchv1alpha1.CronJob) { c.Spec.StartingDeadlineSeconds = new(int64(600)) }, after: missed,
		},
		{
			words: "set or lower spec.startingDeadlineSeconds",
			change: func(spec *batchv1alpha1.CronJobSpec) {
				spec.Suspend, spec.StartingDeadlineSeconds = new(true), new(int64(7200))
			},
			before: missed, remedy: func(c *batchv1alpha1.CronJob) { c.Spec.StartingDeadlineSeconds = new(int64(600)) }, after: missed,
		},
		{ // the clock of the controllers was wrong
			words: "or look at the clock", change: suspended, before: missed,
			remedy: func(*batchv1alpha1.CronJob) {}, after: []string{"12:20 schedule * * * * *", "12:21 resume"},
		},
		{
			words: "spec.schedule names a time zone, which goes before spec.timeZone; write it as spec.timeZone alone",
			change: func(spec *batchv1alpha1.CronJobSpec) {
				spec.Schedule, spec.TimeZone = "TZ=Europe/Berlin 0 14 * * *", nil
			},
			remedy: func(c *batchv1alpha1.CronJob) { c.Spec.Schedule, c.Spec.TimeZone = "0 14 * * *", new("Europe/Berlin") },
		},
		{
			words: "which is not of this CronJob; delete it", others: stranger, remedy: func(*batchv1alpha1.CronJob) {},
			after: []string{"12:20 gone 13"},
		},
		{
			words: "or call the CronJob otherwise", others: stranger,
			remedy: func(c *batchv1alpha1.CronJob) { c.Name = "weekly" },
		},
	} {
		run := func(remedy func(*batchv1alpha1.CronJob), play []string) *stage {
			s := newStage(t, Options{}, openQueue())
			cronJob := nightly(t)
			if c.change != nil {
				c.change(&cronJob.Spec)
			}
			if c.others != nil {
				c.others(s)
			}
			if remedy != nil {
				remedy(cronJob)
			}
			s.add(cronJob)
			s.settle()
			for _, line := range play {
				s.happens(line)
				s.settle()
			}
			if s.now.Hour() < 13 {
				s.now = time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
				s.settle()
			}
			return s
		}
		if s := run(nil, c.before); !s.told(c.words) {
			t.Errorf("no event states the remedy %q: %q", c.words, s.lines)
		}
		if s := run(c.remedy, c.after); s.told(c.words) || !s.told("Normal SuccessfulCreate: made Job ") {
			t.Errorf("after the remedy %q: %q", c.words, s.lines)
		}
	}
}

// TestRemediesOfShares has queues with a larger deserved share than their parent. The controllers mark the latest of them, with the remedy.
// After the remedy the mark states that the shares fit.
func TestRemediesOfShares(t *testing.T) {
	for remedy, change := range map[string][2]string{"write less": {"z", "2"}, "or raise that of org": {"org", "11"}} {
		s := newStage(t, Options{}, sharing("root", "", 0, "", ""), sharing("org", "root", 0, "", "10"),
			sharing("m", "org", 1, "", "8"), sharing("z", "org", 2, "", "3"))
		c := &shares{s.parts}
		lookAtShares(c, s, "m", "z")
		if !s.told("makes 11, and queue org above them deserves 10; write less, or raise that of org") || !s.told(remedy) {
			t.Fatalf("no event states the remedy: %v", s.lines)
		}
		lookAtShares(c, s, append(changeDeserved(c, s, change[0], change[1]), "z")...)
		if got := strings.Join(marksOf(s), "\n"); !strings.Contains(got, "z SharesOverParent=False SharesFit") {
			t.Errorf("after the remedy %q: %s", remedy, got)
		}
	}
}

// TestRemediesOfFlows has a JobFlow whose JobTemplate is missing, and one whose Job name is taken by a user's Job. After the remedy in the
// event, the flow has its Job.
func TestRemediesOfFlows(t *testing.T) {
	theirs := func() *batchv1alpha1.Job {
		job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "f-a"}}
		job.Spec.SchedulerName = "other"
		return job
	}
	gone := func(s *stage) {
		job := s.jobNamed("f-a")
		if err := s.api.Delete(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		s.flows().JobGone(job)
	}
	for _, c := range []struct {
		words  string
		others client.Object
		remedy func(*stage)
	}{
		{"there is no JobTemplate a in namespace team; make it, and its Job is made then", nil, func(s *stage) { s.add(template("a")) }},
		{"it is not taken for its own; delete or rename that Job", theirs(), gone},
		{"or rename that Job", theirs(), func(s *stage) {
			gone(s)
			renamed := theirs()
			renamed.Name = "theirs"
			s.add(renamed)
		}},
	} {
		s := newStage(t, Options{}, openQueue(), flowOf(t, "flows: [{name: a}]"))
		if c.others != nil {
			s.add(template("a"))
			s.add(c.others)
		}
		s.settle()
		if !s.told(c.words) {
			t.Errorf("no event states the remedy %q: %q", c.words, s.lines)
		}
		s.lines = nil
		c.remedy(s)
		s.settle()
		if s.told(c.words) || !metav1.IsControlledBy(s.jobNamed("f-a"), s.flow()) {
			t.Errorf("after the remedy %q the flow has no Job: %q", c.words, s.lines)
		}
	}
}

// TestRemediesOfRestarts brings a job near the limit of its restarts. Once the cause of the restarts is removed, the job completes, and the
// limit is not near.
func TestRemediesOfRestarts(t *testing.T) {
	near := 0
	for _, c := range limitCases() {
		if c.kind != batchv1alpha1.RetryLimitNear && c.kind != batchv1alpha1.TaskRetryLimitNear {
			continue
		}
		near++
		c.says = append(c.says, "Remove the cause of the restarts")
		s := c.isNear(t)
		s.play("train", corev1.PodSucceeded, 0)
		s.settle()
		if got := s.job().Status.State.Phase; got != batchv1alpha1.Completed {
			t.Errorf("%s: the job is %s", c.name, got)
		}
		c.isOver(s)
	}
	if near != 2 {
		t.Errorf("%d limits of restarts, want 2", near)
	}
}
