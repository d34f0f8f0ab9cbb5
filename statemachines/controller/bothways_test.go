package controller

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

const samples = "../../samples"

// difference is a field that may differ between what the controllers create and what a World has, and why.
type difference struct{ field, why string }

// inAnyWorld returns the differences for any Job in a World.
func inAnyWorld() []difference {
	return []difference{
		{`metadata\.(creationTimestamp|resourceVersion|uid|finalizers.*)`, "the API server and the test write it"},
		{`status\..*`, "the scheduler and the kubelet write it"},
	}
}

// inManifest returns the differences for a Job that a World reads from its manifest.
func inManifest() []difference {
	return []difference{{`spec\.priority`, "the API server resolves the priority class; the fake one does not"}}
}

// inShortFormat returns the differences for a job in the short format, which contains only what a scheduler reads.
func inShortFormat() []difference {
	return []difference{
		{`PodGroup/metadata\.name`, "scenarios name the PodGroup as the job; a Job's controllers append its UID"},
		{`Pod/metadata\.annotations\.scheduling\.k8s\.io/group-name`, "it is the name of the PodGroup"},
		{`metadata\.ownerReferences.*`, "there is no Job in the World, and no garbage collector"},
		{`Pod/spec\.containers\[0\]\.(command|args|workingDir).*`, "no container runs"},
		{`Pod/spec\.containers\[0\]\.resources\.limits\.(cpu|memory)`, "it states requests, and the scheduler reads no other limits"},
		{`PodGroup/spec\.minResources\.limits\.(cpu|memory)`, "likewise"},
		{`Pod/spec\.restartPolicy`, "no container is restarted: a pod ends once"},
	}
}

// TestSamplesAreCreatedBothWays lets the controllers and a World process each Job of the samples, both from its manifest and from the short
// format. PodGroups and pods must be equal in every field, except for the differences that are listed with a reason.
func TestSamplesAreCreatedBothWays(t *testing.T) {
	t.Parallel()
	plugins, docs := samplePlugins(t)
	world, short := newAllowed(append(inAnyWorld(), inManifest()...)), newAllowed(append(inAnyWorld(), inShortFormat()...))
	jobs := sampleJobs(t)
	for _, path := range slices.Sorted(maps.Keys(jobs)) {
		for _, job := range jobs[path] {
			compareWays(t, path+" as a manifest", byControllers(t, job, plugins), byManifest(t, job, docs), world)
			plain := plainJob(job)
			compareWays(t, path+" in the short format", byControllers(t, plain, nil), byShortFormat(t, plain), short)
		}
	}
	if len(jobs) < 12 {
		t.Errorf("only %d samples have a Job", len(jobs))
	}
	for _, allowed := range []*allowed{world, short} {
		for field, used := range allowed.used {
			if !used {
				t.Errorf("%s never differs; take it out of the list", field)
			}
		}
	}
}

// TestSamplePodsGetTheirGroupBothWays does the same for pods of the samples without a job and without a PodGroup of their own.
func TestSamplePodsGetTheirGroupBothWays(t *testing.T) {
	t.Parallel()
	sources, err := manifest.Read(nil, samples+"/jobs", samples+"/operators")
	if err != nil {
		t.Fatal(err)
	}
	read, issues := manifest.Load(manifest.Options{}, sources...)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	pods, may := 0, newAllowed(append(inAnyWorld(), inManifest()...))
	for _, i := range read.Items {
		pod, ok := i.Object.(*corev1.Pod)
		if !ok || objects.GroupOf(pod) != "" || pod.Spec.SchedulerName != "celsius" && pod.Spec.SchedulerName != "volcano" {
			continue
		}
		pods++
		pod.TypeMeta, pod.Namespace, pod.UID = metav1.TypeMeta{}, namespace, types.UID(pod.Name)
		queue := openQueue()
		queue.Name = objects.QueueName(pod.Annotations[schedulingv1beta1.QueueNameAnnotationKey])
		s := newStage(t, Options{}, queue, pod.DeepCopy())
		s.now = s.now.Add(aloneFor) // until then only the scheduler creates it
		s.settle()
		compareWays(t, pod.Name, s.madeOf(), inWorld(t, queue.Name, manifest.Item{Kind: "Pod", Object: pod.DeepCopy()}, nil), may)
	}
	if pods == 0 {
		t.Error("no sample has a pod alone")
	}
}

// made contains a PodGroup under the key "PodGroup", and pods under "Pod " and their names.
type made map[string]map[string]string

func (m made) add(t *testing.T, key string, object any) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	m[key] = map[string]string{}
	flattenInto(m[key], "", fields)
}

func flattenInto(out map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			flattenInto(out, strings.TrimPrefix(at+"."+key, "."), below)
		}
	case []any:
		for i, below := range v {
			flattenInto(out, fmt.Sprintf("%s[%d]", at, i), below)
		}
	case nil:
	default:
		text := fmt.Sprint(v)
		if q, err := resource.ParseQuantity(text); err == nil { // 2 and 2000m are equal
			text = q.AsDec().String()
		}
		out[at] = text
	}
}

// allowed is a list of differences, with the ones that occurred.
type allowed struct {
	fields map[string]*regexp.Regexp
	used   map[string]bool
}

func newAllowed(list []difference) *allowed {
	a := &allowed{map[string]*regexp.Regexp{}, map[string]bool{}}
	for _, d := range list {
		field := d.field
		if !strings.Contains(field, "/metadata") && !strings.Contains(field, "/spec") {
			field = `(Pod|PodGroup)/` + field
		}
		a.fields[d.field], a.used[d.field] = regexp.MustCompile("^"+field+"$"), false
	}
	return a
}

func (a *allowed) has(field string) bool {
	found := false
	for name, pattern := range a.fields {
		if pattern.MatchString(field) {
			a.used[name], found = true, true
		}
	}
	return found
}

func compareWays(t *testing.T, what string, theirs, ours made, may *allowed) {
	t.Helper()
	if len(theirs) < 2 {
		t.Errorf("%s: the controllers created only %v", what, slices.Sorted(maps.Keys(theirs)))
	}
	if a, b := slices.Sorted(maps.Keys(theirs)), slices.Sorted(maps.Keys(ours)); !slices.Equal(a, b) {
		t.Errorf("%s: the controllers created %v, the World has %v", what, a, b)
		return
	}
	for object, fields := range theirs {
		kind, _, _ := strings.Cut(object, " ")
		all := maps.Clone(fields)
		maps.Copy(all, ours[object])
		for _, field := range slices.Sorted(maps.Keys(all)) {
			a, inA := fields[field]
			b, inB := ours[object][field]
			if (a != b || inA != inB) && !may.has(kind+"/"+field) {
				t.Errorf("%s: %s: %s is %q (there: %t) by the controllers, %q (there: %t) in the World", what, object, field, a, inA, b, inB)
			}
		}
	}
}

// byControllers runs the controllers on a Job until they become idle, and admits the Job.
func byControllers(t *testing.T, job *batchv1alpha1.Job, plugins *jobplugin.Set) made {
	t.Helper()
	job = job.DeepCopy()
	objects.Default(job)
	queue := openQueue()
	queue.Name = job.Spec.Queue
	s := newStage(t, Options{JobPlugins: plugins}, queue, job)
	for _, class := range sampleClasses() {
		s.add(class)
	}
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.settle()
	return s.madeOf()
}

// madeOf returns the objects of the stage.
func (s *stage) madeOf() made {
	s.t.Helper()
	out := made{}
	for _, g := range s.groups() {
		out.add(s.t, "PodGroup", &g)
	}
	for _, p := range s.pods() {
		objects.PodDefaults(p) // the API server does this, but the fake one does not
		out.add(s.t, "Pod "+p.Name, p)
	}
	return out
}

// sampleClasses returns the priority classes that samples name.
func sampleClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "deadline"}, Value: 10}}
}

// byManifest lets a World read the Job, admit it, and simulate its controllers.
func byManifest(t *testing.T, job *batchv1alpha1.Job, plugins []manifest.Uncompiled) made {
	t.Helper()
	return inWorld(t, objects.QueueName(job.Spec.Queue), manifest.Item{Kind: "Job", Object: job.DeepCopy()}, plugins)
}

func inWorld(t *testing.T, queueName string, item manifest.Item, plugins []manifest.Uncompiled) made {
	t.Helper()
	docs, issues := source.Parse("policy", []byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: all}
spec: {pipeline: [enqueue], tiers: [{name: t, tables: [{name: gang}]}]}
`))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w := sim.NewWorld(sim.Options{})
	w.Policy = p
	in := &manifest.Objects{JobPlugins: plugins}
	queue := openQueue()
	queue.Name = queueName
	in.Items = append(in.Items, manifest.Item{Kind: "Queue", Object: queue}, item)
	for _, class := range sampleClasses() {
		in.Items = append(in.Items, manifest.Item{Kind: "PriorityClass", Object: class})
	}
	if issues := w.Submit(in); issues.Err() != nil {
		t.Fatal(issues)
	}
	if _, err := w.Cycle(); err != nil {
		t.Fatal(err)
	}
	out := made{}
	for _, j := range w.Cluster().Jobs {
		out.add(t, "PodGroup", j.Object)
		for _, task := range j.Tasks {
			out.add(t, "Pod "+task.Object.Name, task.Object)
		}
	}
	return out
}

// byShortFormat lets a World read the same job in the short format.
func byShortFormat(t *testing.T, job *batchv1alpha1.Job) made {
	t.Helper()
	job = job.DeepCopy()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": manifest.WorldVersion, "kind": "World", "jobs": []any{shortJob(t, job)},
		"priorityClasses": map[string]any{"deadline": 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	read, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "short.yaml", Data: text})
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	out := made{}
	for _, i := range read.Items {
		switch o := i.Object.(type) {
		case *schedulingv1beta1.PodGroup:
			o.Spec.Queue = objects.QueueName(o.Spec.Queue) // the World does this when it reads the object
			out.add(t, "PodGroup", o)
		case *corev1.Pod:
			objects.PodDefaults(o) // likewise
			out.add(t, "Pod "+o.Name, o)
		}
	}
	return out
}

// plainJob returns a copy of a Job without parts that the short format cannot express: it has no plugins, and its container is named main.
func plainJob(job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job = job.DeepCopy()
	job.Spec.Plugins = nil
	for i := range job.Spec.Tasks {
		template := &job.Spec.Tasks[i].Template
		if life, ok := template.Annotations[manifest.LifeAnnotation]; ok {
			template.Annotations[manifest.LifeAnnotation] = strings.ReplaceAll(life, template.Spec.Containers[0].Name+":", "main:")
		}
		template.Spec.Containers[0].Name = "main"
	}
	return job
}

// shortJob converts a Job to the short format. It fails the test for parts that it cannot convert.
func shortJob(t *testing.T, job *batchv1alpha1.Job) map[string]any {
	t.Helper()
	short := map[string]any{
		"name": job.Name, "namespace": job.Namespace, "queue": job.Spec.Queue, "priority": job.Spec.PriorityClassName, "autoMinResources": true,
		"labels": job.Labels, "annotations": job.Annotations,
	}
	if job.Spec.MinAvailable > 0 {
		short["min"] = job.Spec.MinAvailable
	}
	var tasks []any
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		spec := &task.Template.Spec
		if len(spec.Containers) != 1 || len(spec.InitContainers)+len(spec.Volumes) > 0 || task.PartitionPolicy != nil || task.DependsOn != nil {
			t.Fatalf("%s: the short format cannot write task %s; list what it lacks", job.Name, task.Name)
		}
		one := map[string]any{
			"name": task.Name, "replicas": task.Replicas, "labels": task.Template.Labels, "annotations": task.Template.Annotations,
			"priority": spec.PriorityClassName, "image": spec.Containers[0].Image, "nodeSelector": spec.NodeSelector,
			"spread": spec.TopologySpreadConstraints,
		}
		if task.MinAvailable != nil {
			one["min"] = *task.MinAvailable
		}
		if spec.Affinity != nil {
			one["affinity"] = spec.Affinity
		}
		extended := map[string]any{}
		for _, list := range []corev1.ResourceList{spec.Containers[0].Resources.Requests, spec.Containers[0].Resources.Limits} {
			for name, amount := range list {
				switch name {
				case corev1.ResourceCPU, corev1.ResourceMemory:
					one[string(name)] = amount.String()
				default:
					extended[string(name)] = amount.String()
				}
			}
		}
		one["extended"] = extended
		if task.TopologyPolicy != "" {
			annotations := maps.Clone(task.Template.Annotations)
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[schedulingv1beta1.NumaPolicyKey] = string(task.TopologyPolicy)
			one["annotations"] = annotations
		}
		tasks = append(tasks, one)
	}
	short["tasks"] = tasks
	return short
}

// samplePlugins returns the job plugins of the samples and the built-in ones, for the controllers and for a World.
func samplePlugins(t *testing.T) (*jobplugin.Set, []manifest.Uncompiled) {
	t.Helper()
	sources, err := manifest.Read(nil, samples+"/jobplugins/jax.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, issues := manifest.Load(manifest.Options{}, sources...)
	if issues.Err() != nil || len(read.JobPlugins) != 1 {
		t.Fatal(issues)
	}
	set, _, issues := jobplugin.LoadDocuments(read.JobPlugins[0].Doc)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return set, read.JobPlugins
}

// sampleJobs reads all valid Jobs below samples by file, including those of CronJobs and of scenarios.
func sampleJobs(t *testing.T) map[string][]*batchv1alpha1.Job {
	t.Helper()
	out := map[string][]*batchv1alpha1.Job{}
	err := filepath.WalkDir(samples, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/invalid/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml":
			out[path] = append(out[path], jobsOf(t, path, data)...)
		case ".txtar":
			for _, f := range txtar.Parse(data).Files {
				out[path] = append(out[path], jobsOf(t, path, f.Data)...)
			}
		}
		if len(out[path]) == 0 {
			delete(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func jobsOf(t *testing.T, path string, data []byte) (out []*batchv1alpha1.Job) {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var head metav1.TypeMeta
		if yaml.Unmarshal(text, &head) != nil || head.APIVersion != batchv1alpha1.GroupVersion.String() {
			continue // a section of a scenario may not be YAML
		}
		job := &batchv1alpha1.Job{}
		switch head.Kind {
		case "Job":
			err = yaml.UnmarshalStrict(text, job)
		case "CronJob":
			cron := &batchv1alpha1.CronJob{}
			err = yaml.UnmarshalStrict(text, cron)
			job.Name, job.Labels, job.Annotations = cron.Name+"-1", cron.Spec.JobTemplate.Labels, cron.Spec.JobTemplate.Annotations
			job.Spec = cron.Spec.JobTemplate.Spec
		default:
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		job.TypeMeta, job.Namespace, job.UID = metav1.TypeMeta{}, namespace, types.UID(job.Name)
		out = append(out, job)
	}
}
