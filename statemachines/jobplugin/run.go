package jobplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// RowError is the failure of a plugin's row on a Job. A retry fails as well, until the Job or the plugin changes.
type RowError struct {
	Plugin, Row string
	Err         error
}

func (e *RowError) Error() string {
	return fmt.Sprintf("job plugin %s, %s: %v", e.Plugin, e.Row, e.Err)
}

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// Mistake is one error in a Job's arguments for a plugin.
type Mistake struct {
	// Field is the path in the Job, for example spec.plugins.ssh.
	Field string
	// Message states what is wrong and what would be correct.
	Message string
}

// Run runs the plugins of one Job. It must be used by one goroutine only.
type Run struct {
	job     *batchv1alpha1.Job
	fields  map[string]any
	plugins []*active
}

// active is a plugin of a Job. Its rows read it as their activation.
type active struct {
	*Plugin
	lang  *language
	fixed typed.Roots
	meter *eval.Meter
	once  map[*podRow][]additions // results of rows that add the same to every pod
}

// For returns the Run of a Job's plugins, or nil if the Job has none. An error states which mistake of the Job the plugins cannot work
// with.
func (s *Set) For(job *batchv1alpha1.Job) (*Run, error) {
	if len(job.Spec.Plugins) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to run
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("read the job: %w", err)
	}
	r := &Run{job: job, fields: fields}
	mistakes, err := s.check(fields, &r.plugins)
	if err != nil {
		return nil, err
	}
	if len(mistakes) > 0 {
		var lines []string
		for _, m := range mistakes {
			lines = append(lines, m.Field+": "+m.Message)
		}
		return nil, errors.New(strings.Join(lines, "; "))
	}
	return r, nil
}

// Mistakes returns the mistakes in the plugins of a Job, which is given as JSON. Unknown plugins are mistakes, too. An error is a row that
// could not be evaluated.
func (s *Set) Mistakes(job map[string]any) ([]Mistake, error) {
	var run []*active
	return s.check(job, &run)
}

// check prepares the plugins in the order in which they run, and returns the mistakes in their arguments.
func (s *Set) check(job map[string]any, run *[]*active) (mistakes []Mistake, err error) {
	lang, err := theLanguage()
	if err != nil {
		return nil, err
	}
	spec, _ := job["spec"].(map[string]any)
	asked, _ := spec["plugins"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		p := s.plugins[name]
		if p == nil {
			mistakes = append(mistakes, Mistake{typed.JoinPath("spec.plugins", name), s.unknown(name)})
			continue
		}
		var args []string
		list, _ := asked[name].([]any)
		for _, item := range list {
			text, _ := item.(string)
			args = append(args, text)
		}
		values, wrong := p.parse(args)
		for _, text := range wrong {
			mistakes = append(mistakes, Mistake{typed.JoinPath("spec.plugins", name), text})
		}
		a := &active{Plugin: p, lang: lang}
		a.fixed = typed.Roots{"job": typed.Object(lang.job, job), "params": paramsValue(values), "variables": p.variables.In(a)}
		*run = append(*run, a)
	}
	slices.SortStableFunc(*run, func(a, b *active) int {
		switch {
		case a.last == b.last:
			return 0
		case b.last:
			return -1
		}
		return 1
	})
	for _, a := range *run {
		for _, v := range a.validations {
			err := a.each(&v.asked, a, func(in cel.Activation) error { return v.find(a.Name, in, &mistakes) })
			if err != nil {
				return nil, &RowError{a.Name, v.name, err}
			}
		}
	}
	return mistakes, nil
}

func (s *Set) unknown(name string) string {
	hint := ""
	if near := source.Nearest(name, s.Names()); near != "" {
		hint = "did you mean " + near + "? "
	}
	return fmt.Sprintf("there is no job plugin %s; %sthe plugins are %s", cut(name), hint, strings.Join(s.Names(), ", "))
}

// paramsValue converts the parameters of a plugin into a value of the language.
func paramsValue(values map[string]ref.Val) ref.Val { return typed.Computed(paramsType(), values) }

// Meter implements eval.Purse. The budget is sufficient to traverse the hosts of the largest possible Job.
func (a *active) Meter(*eval.Expr) *eval.Meter {
	if a.meter == nil {
		const steps, bytes = 50_000_000, 256 << 20
		a.meter = eval.NewMeter(eval.Budget{Steps: steps, Bytes: bytes}, 1<<40)
	}
	return a.meter
}

// ResolveName implements cel.Activation.
func (a *active) ResolveName(name string) (any, bool) { return a.fixed.ResolveName(name) }

// Parent implements cel.Activation.
func (a *active) Parent() cel.Activation { return nil }

func holds(e *eval.Expr, in cel.Activation) (bool, error) {
	got := e.Eval(in)
	if err, failed := got.(*types.Err); failed {
		return false, err
	}
	yes, ok := got.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gave a %s", got.Type().TypeName())
	}
	return bool(yes), nil
}

// each calls do for every element of the lists in a row's forEach for which its when is true.
func (a *active) each(r *asked, in cel.Activation, do func(cel.Activation) error) error {
	return typed.Each(r.loops, in, func(in cel.Activation) error {
		if r.when != nil {
			if yes, err := holds(r.when, in); err != nil || !yes {
				return err
			}
		}
		return do(in)
	})
}

// find evaluates a validation, and adds its mistake to out.
func (v *validation) find(plugin string, in cel.Activation, out *[]Mistake) error {
	if v.expression != nil {
		if yes, err := holds(v.expression, in); err != nil || yes {
			return err
		}
	}
	m := Mistake{Field: typed.JoinPath("spec.plugins", plugin)}
	var err error
	if v.fieldPath != nil {
		if m.Field, err = v.fieldPath.Render(in); err != nil {
			return err
		}
	}
	if m.Message, err = v.message.Render(in); err != nil {
		return err
	}
	*out = append(*out, m)
	return nil
}

// taskOf is a task of a Job, in the form that rows read.
type taskOf struct{ value ref.Val }

// ResolveName implements cel.Activation.
func (s *podScope) ResolveName(name string) (any, bool) {
	switch name {
	case "task":
		return s.task.value, true
	case "index":
		return types.Int(s.index), true
	case "pod":
		return asObject(s.lang.pod, s.pod), true
	case "container":
		if s.container == nil {
			return types.NewErr("the row does not say which containers it is about"), true
		}
		return asObject(s.lang.container, s.container), true
	}
	return s.active.ResolveName(name)
}

// asObject converts a Go object into a value of the language.
func asObject(schema *typed.Schema, of any) ref.Val {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return types.WrapErr(err)
	}
	return typed.Object(schema, fields)
}

// Pod adds to a pod of a task what the plugins define. An error names the plugin, the row and the cause.
func (r *Run) Pod(task *batchv1alpha1.TaskSpec, index int, pod *corev1.Pod) error {
	if r == nil || len(r.plugins) == 0 {
		return nil
	}
	at := slices.IndexFunc(r.job.Spec.Tasks, func(t batchv1alpha1.TaskSpec) bool { return t.Name == task.Name })
	if at < 0 {
		return fmt.Errorf("the job has no task %s", task.Name)
	}
	path := typed.Path(nil).Key("spec").Key("tasks").Index(at)
	fields, _ := path.Get(r.fields).(map[string]any)
	one := &taskOf{typed.Object(r.plugins[0].lang.task, fields)}
	for _, a := range r.plugins {
		s := &podScope{active: a, task: one, index: index, pod: pod}
		for _, row := range a.pods {
			if err := s.run(row); err != nil {
				return &RowError{a.Name, row.name, err}
			}
		}
	}
	return nil
}

// Made is an object that a plugin creates in addition to a Job's pods.
type Made struct {
	// Plugin is the name of the plugin.
	Plugin string
	// APIVersion, Kind and Name identify the object. It is in the Job's namespace.
	APIVersion, Kind, Name string

	job *batchv1alpha1.Job
	row *object
	in  cel.Activation
}

// Stamp returns a digest of a Job's plugins. The digest and the Job determine all objects that the plugins create.
func (s *Set) Stamp(job *batchv1alpha1.Job) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(job.Spec.Plugins)) {
		if p := s.plugins[name]; p != nil {
			sum.Write(p.digest[:])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// Plugins lists the plugins, in the order in which they run.
func (r *Run) Plugins() (names []string) {
	if r == nil {
		return nil
	}
	for _, a := range r.plugins {
		names = append(names, a.Name)
	}
	return names
}

// Objects lists the objects that the plugins create in addition to the pods.
func (r *Run) Objects() (out []*Made, err error) {
	if r == nil {
		return nil, nil
	}
	for _, a := range r.plugins {
		for _, row := range a.objects {
			err := a.each(&row.asked, a, func(in cel.Activation) error {
				name, err := row.called.Render(in)
				if err != nil {
					return err
				}
				version, kind, _ := strings.Cut(row.kind, " ")
				out = append(out, &Made{Plugin: a.Name, APIVersion: version, Kind: kind, Name: name, job: r.job, row: row, in: typed.Keep(in)})
				return nil
			})
			if err != nil {
				return nil, &RowError{a.Name, row.name, err}
			}
		}
	}
	return out, nil
}

// Once reports whether the object is created once and never updated.
func (m *Made) Once() bool { return m.row.once }

// Render returns the complete object.
func (m *Made) Render() (*unstructured.Unstructured, error) {
	v, err := m.row.template.value(m.in)
	if err != nil {
		return nil, m.failed(err)
	}
	fields, _ := v.(map[string]any)
	if err := m.checked(fields); err != nil {
		return nil, m.failed(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetNamespace(m.job.Namespace)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m.job, batchv1alpha1.GroupVersion.WithKind("Job"))})
	return u, nil
}

// checked decodes the object as its Go type, so that an error names the field.
func (m *Made) checked(fields map[string]any) error {
	return into(fields, reflect.New(kinds[m.row.kind]).Interface())
}

func (m *Made) failed(err error) error {
	return &RowError{m.Plugin, m.row.name, err}
}
