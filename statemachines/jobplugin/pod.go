package jobplugin

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// podRow is a row that adds to pods.
type podRow struct {
	asked
	sections  []string   // the values are containers, initContainers
	container *eval.Expr // selects containers; nil: all
	adds      map[string]*template
	// same states that the row adds the same to every pod of a Job. It is then computed once.
	same bool
}

// additions are what a row adds, by key, as Go values of the types in toPods and toContainers.
type additions map[string]any

// The keys that a row may add to a pod, and to its containers. docs/job-plugins.md describes how each is added.
var (
	toPods = map[string]reflect.Type{ //nolint:gochecknoglobals // a table that never changes
		"annotations": reflect.TypeFor[map[string]string](), "labels": reflect.TypeFor[map[string]string](),
		"hostname": reflect.TypeFor[string](), "subdomain": reflect.TypeFor[string](),
		"volumes": reflect.TypeFor[[]corev1.Volume](), "initContainers": reflect.TypeFor[[]corev1.Container](),
	}
	toContainers = map[string]reflect.Type{ //nolint:gochecknoglobals // a table that never changes
		"env": reflect.TypeFor[[]corev1.EnvVar](), "ports": reflect.TypeFor[[]corev1.ContainerPort](),
		"mounts": reflect.TypeFor[[]corev1.VolumeMount](), "command": reflect.TypeFor[[]string](), "args": reflect.TypeFor[[]string](),
	}
)

func (c *compiler) readPodRow(item source.Value) {
	fields := item.Fields(keysOf(partPod), &c.issues)
	c.need(item, "name")
	c.same = true
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
	r.same = r.container == nil && c.same
	c.plugin.pods = append(c.plugin.pods, r)
}

// podScope contains what a row of pods can read.
type podScope struct {
	*active
	task      *taskOf
	index     int
	pod       *corev1.Pod
	container *corev1.Container
}

// run adds to the pod what a row defines. Existing values of the pod stay.
func (s *podScope) run(r *podRow) error {
	if !r.same {
		return s.each(&r.asked, s, func(in cel.Activation) error { return s.add(r, in, nil) })
	}
	if s.once == nil {
		s.once = map[*podRow][]additions{}
	}
	all, known := s.once[r]
	if !known {
		err := s.each(&r.asked, s, func(in cel.Activation) error {
			one, err := r.additions(in)
			all = merged(all, one)
			return err
		})
		if err != nil {
			return err
		}
		s.once[r] = all
	}
	for _, one := range all {
		if err := s.add(r, nil, one); err != nil {
			return err
		}
	}
	return nil
}

// merged appends the additions of one more element of a row's lists. Additions of environment variables alone are merged into the last
// ones.
func merged(all []additions, one additions) []additions {
	if len(all) == 0 {
		return []additions{one}
	}
	env, ok := one["env"].([]corev1.EnvVar)
	last, also := all[len(all)-1]["env"].([]corev1.EnvVar)
	if !ok || !also || len(one) != 1 {
		return append(all, one)
	}
	all[len(all)-1]["env"] = append(last, env...)
	return all
}

// additions computes what the row adds.
func (r *podRow) additions(in cel.Activation) (additions, error) {
	out := additions{}
	for key, t := range r.adds {
		v, err := t.value(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		of := toPods[key]
		if of == nil {
			of = toContainers[key]
		}
		decoded := reflect.New(of)
		if err := into(v, decoded.Interface()); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = decoded.Elem().Interface()
	}
	return out, nil
}

// add adds to the pod and its containers. It adds given, or computes the additions if given is nil.
func (s *podScope) add(r *podRow, in cel.Activation, given additions) error {
	if len(r.sections) == 0 {
		adds, err := r.of(in, given)
		if err == nil {
			addToPod(s.pod, adds)
		}
		return err
	}
	for _, section := range r.sections {
		list := s.pod.Spec.Containers
		if section == "initContainers" {
			list = s.pod.Spec.InitContainers
		}
		for i := range list {
			s.container = &list[i]
			if r.container != nil {
				if yes, err := holds(r.container, in); err != nil {
					return err
				} else if !yes {
					continue
				}
			}
			adds, err := r.of(in, given)
			if err != nil {
				return err
			}
			addToPod(s.pod, adds)
			addToContainer(s.pod, &list[i], adds)
		}
		s.container = nil
	}
	return nil
}

func (r *podRow) of(in cel.Activation, given additions) (additions, error) {
	if given != nil {
		return given, nil
	}
	return r.additions(in)
}

func addToPod(pod *corev1.Pod, adds additions) {
	for key, to := range map[string]*map[string]string{"annotations": &pod.Annotations, "labels": &pod.Labels} {
		add, _ := adds[key].(map[string]string)
		if len(add) > 0 && *to == nil {
			*to = map[string]string{}
		}
		for name, value := range add {
			if (*to)[name] == "" {
				(*to)[name] = value
			}
		}
	}
	for key, to := range map[string]*string{"hostname": &pod.Spec.Hostname, "subdomain": &pod.Spec.Subdomain} {
		if text, ok := adds[key].(string); ok && *to == "" {
			*to = text
		}
	}
	volumes, _ := adds["volumes"].([]corev1.Volume)
	addAll(&pod.Spec.Volumes, volumes, (*corev1.Volume).DeepCopy, func(v *corev1.Volume) string { return v.Name }, false)
	containers, _ := adds["initContainers"].([]corev1.Container)
	addAll(&pod.Spec.InitContainers, containers, (*corev1.Container).DeepCopy, func(c *corev1.Container) string { return c.Name }, false)
}

func addToContainer(pod *corev1.Pod, c *corev1.Container, adds additions) {
	env, _ := adds["env"].([]corev1.EnvVar)
	addAll(&c.Env, env, (*corev1.EnvVar).DeepCopy, func(e *corev1.EnvVar) string { return e.Name }, true)
	mounts, _ := adds["mounts"].([]corev1.VolumeMount)
	addAll(&c.VolumeMounts, mounts, (*corev1.VolumeMount).DeepCopy, func(m *corev1.VolumeMount) string { return m.MountPath }, false)
	ports, _ := adds["ports"].([]corev1.ContainerPort)
	for _, port := range ports {
		addPort(pod, c, port)
	}
	if command, ok := adds["command"].([]string); ok {
		c.Command = slices.Clone(command)
	}
	if args, ok := adds["args"].([]string); ok {
		c.Args = slices.Clone(args)
	}
}

// addPort adds a port, unless the container has one with the same number and protocol. In pods with host network a port belongs to the
// host. Therefore only one of their containers may have it. The port's name is omitted if another port of the container has it.
func addPort(pod *corev1.Pod, c *corev1.Container, port corev1.ContainerPort) {
	same := func(p corev1.ContainerPort) bool {
		return p.ContainerPort == port.ContainerPort && cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(port.Protocol, corev1.ProtocolTCP)
	}
	taken := slices.ContainsFunc(c.Ports, same)
	if pod.Spec.HostNetwork {
		for i := range pod.Spec.Containers {
			taken = taken || slices.ContainsFunc(pod.Spec.Containers[i].Ports, same)
		}
	}
	if taken {
		return
	}
	if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.Name }) {
		port.Name = ""
	}
	c.Ports = append(c.Ports, port)
}

// addAll adds copies of the elements whose key does not exist yet. Existing elements stay, or are replaced if replace is true.
func addAll[T any](to *[]T, add []T, dup func(*T) *T, key func(*T) string, replace bool) {
	if len(add) == 0 {
		return
	}
	at := make(map[string]int, len(*to)+len(add))
	for i := range *to {
		at[key(&(*to)[i])] = i
	}
	for i := range add {
		name := key(&add[i])
		old, there := at[name]
		switch {
		case !there:
			at[name] = len(*to)
			*to = append(*to, *dup(&add[i]))
		case replace:
			(*to)[old] = *dup(&add[i])
		}
	}
}
