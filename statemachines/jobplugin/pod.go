package jobplugin

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// podRow adds to pods.
type podRow struct {
	asked
	sections  []string   // containers, initContainers
	container *eval.Expr // which of them; nil: all
	adds      map[string]*template
}

// What a row may add to a pod, and to containers of it. How each is added stands in docs/job-plugins.md.
var (
	toPods = map[string]reflect.Type{
		"annotations": reflect.TypeFor[map[string]string](), "labels": reflect.TypeFor[map[string]string](),
		"hostname": reflect.TypeFor[string](), "subdomain": reflect.TypeFor[string](),
		"volumes": reflect.TypeFor[[]corev1.Volume](), "initContainers": reflect.TypeFor[[]corev1.Container](),
	}
	toContainers = map[string]reflect.Type{
		"env": reflect.TypeFor[[]corev1.EnvVar](), "ports": reflect.TypeFor[[]corev1.ContainerPort](),
		"mounts": reflect.TypeFor[[]corev1.VolumeMount](), "command": reflect.TypeFor[[]string](), "args": reflect.TypeFor[[]string](),
	}
)

func (c *compiler) readPodRow(item source.Value) {
	keys := slices.Concat([]string{"name", "description", "forEach", "when", "in", "container"},
		slices.Collect(maps.Keys(toPods)), slices.Collect(maps.Keys(toContainers)))
	fields := item.Fields(keys, &c.issues)
	c.need(item, "name")
	a, sees, ok := c.readAsked(item, c.podRoots())
	if !ok {
		return
	}
	r := &podRow{asked: a, sections: item.Get("in").Strings(&c.issues), adds: map[string]*template{}}
	for _, section := range r.sections {
		if section != "containers" && section != "initContainers" {
			c.report(item.Get("in").Issuef("write containers, initContainers, or both", "a pod has no %q", section))
		}
	}
	if which := item.Get("container"); which.Exists() {
		r.container = c.compileWith(sees, which.Text(&c.issues), rules.Bool())
	}
	for _, f := range fields {
		t, ofPod := toPods[f.Name]
		if !ofPod {
			if t, ok = toContainers[f.Name]; !ok {
				continue
			}
			if len(r.sections) == 0 {
				c.report(f.Key.Issuef("add in: [containers]", "%s is added to containers, and the row does not say to which", f.Name))
			}
		}
		r.adds[f.Name] = c.readTemplate(f.Value, t, sees)
	}
	if len(r.adds) == 0 {
		c.report(item.Issuef("add env, ports, mounts, volumes or the like", "the row adds nothing"))
	}
	c.plugin.pods = append(c.plugin.pods, r)
}

// podScope is what a row about a pod sees.
type podScope struct {
	*active
	task      *taskOf
	index     int
	pod       *corev1.Pod
	container *corev1.Container
}

// add adds to a pod what a row adds to it. What the pod has of its own stays.
func (r *podRow) add(s *podScope, in cel.Activation) error {
	for name, t := range r.adds {
		if toPods[name] == nil {
			continue
		}
		if err := r.addToPod(s.pod, name, t, in); err != nil {
			return err
		}
	}
	for _, section := range r.sections {
		list := s.pod.Spec.Containers
		if section == "initContainers" {
			list = s.pod.Spec.InitContainers
		}
		for i := range list {
			s.container = &list[i]
			if r.container != nil {
				if yes, err := holds(r.container, in); err != nil || !yes {
					if err != nil {
						return err
					}
					continue
				}
			}
			if err := r.addToContainer(&list[i], in); err != nil {
				return err
			}
		}
		s.container = nil
	}
	return nil
}

func rendered[T any](t *template, in cel.Activation) (out T, err error) {
	v, err := t.value(in)
	if err != nil {
		return out, err
	}
	return out, into(v, &out)
}

func (r *podRow) addToPod(pod *corev1.Pod, name string, t *template, in cel.Activation) error {
	switch name {
	case "annotations", "labels":
		add, err := rendered[map[string]string](t, in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		to := &pod.Annotations
		if name == "labels" {
			to = &pod.Labels
		}
		if *to == nil {
			*to = map[string]string{}
		}
		for key, value := range add {
			if (*to)[key] == "" {
				(*to)[key] = value
			}
		}
	case "hostname", "subdomain":
		text, err := rendered[string](t, in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		to := &pod.Spec.Hostname
		if name == "subdomain" {
			to = &pod.Spec.Subdomain
		}
		if *to == "" {
			*to = text
		}
	case "volumes":
		return addAll(&pod.Spec.Volumes, t, in, name, func(a, b *corev1.Volume) bool { return a.Name == b.Name }, false)
	case "initContainers":
		return addAll(&pod.Spec.InitContainers, t, in, name, func(a, b *corev1.Container) bool { return a.Name == b.Name }, false)
	}
	return nil
}

func (r *podRow) addToContainer(c *corev1.Container, in cel.Activation) error {
	for _, name := range slices.Sorted(maps.Keys(r.adds)) {
		t := r.adds[name]
		var err error
		switch name {
		case "env":
			err = addAll(&c.Env, t, in, name, func(a, b *corev1.EnvVar) bool { return a.Name == b.Name }, true)
		case "ports":
			err = addAll(&c.Ports, t, in, name, func(a, b *corev1.ContainerPort) bool { return a.ContainerPort == b.ContainerPort }, false)
		case "mounts":
			err = addAll(&c.VolumeMounts, t, in, name, func(a, b *corev1.VolumeMount) bool { return a.MountPath == b.MountPath }, false)
		case "command":
			c.Command, err = rendered[[]string](t, in)
		case "args":
			c.Args, err = rendered[[]string](t, in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addAll adds what is not there yet; what is, stays, or takes the new value.
func addAll[T any](to *[]T, t *template, in cel.Activation, name string, same func(a, b *T) bool, replace bool) error {
	add, err := rendered[[]T](t, in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i := range add {
		at := slices.IndexFunc(*to, func(old T) bool { return same(&old, &add[i]) })
		switch {
		case at < 0:
			*to = append(*to, add[i])
		case replace:
			(*to)[at] = add[i]
		}
	}
	return nil
}
