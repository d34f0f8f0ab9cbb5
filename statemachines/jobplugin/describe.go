package jobplugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/rules"
)

// Param describes a parameter.
type Param struct {
	Name, Flag, Type, Default, Doc string
	// Range says which numbers or texts it takes; "": any.
	Range string
}

// Row describes a row about pods, or an object.
type Row struct {
	Name, Doc string
	// Adds is what it adds to a pod, by key; of an object its kind.
	Adds []string
}

// Params lists the parameters.
func (p *Plugin) Params() (out []Param) {
	for _, x := range p.params {
		d := Param{
			Name: x.name, Flag: "--" + x.flag, Type: x.kind, Default: fmt.Sprint(x.otherwise.Value()), Doc: x.doc,
			Range: strings.TrimSpace(x.within()),
		}
		if x.pattern != "" {
			d.Range = "matches " + x.pattern
		}
		out = append(out, d)
	}
	return out
}

// PodRows lists the rows about pods.
func (p *Plugin) PodRows() (out []Row) {
	for _, r := range p.pods {
		d := Row{Name: r.name, Doc: r.doc}
		for key := range r.adds {
			d.Adds = append(d.Adds, key)
		}
		slices.Sort(d.Adds)
		out = append(out, d)
	}
	return out
}

// ObjectRows lists the objects.
func (p *Plugin) ObjectRows() (out []Row) {
	for _, o := range p.objects {
		_, kind, _ := strings.Cut(o.kind, " ")
		out = append(out, Row{Name: o.name, Doc: o.doc, Adds: []string{kind}})
	}
	return out
}

// Key describes a key of a file.
type Key struct{ Name, Value, Doc string }

// Part is a part of a file.
type Part struct {
	Name, Doc string
	Keys      []Key
}

// Schema lists what a file may hold.
func Schema() []Part {
	asked := []Key{
		{"name", "text", "by which errors name the row"},
		{"description", "text", "for people"},
		{
			"forEach", "list of {item, index, in}",
			"the row is asked for each element of the lists, of which the later may read the elements of the earlier",
		},
		{"when", "CEL: bool", "whether the row is asked at all"},
	}
	return []Part{
		{"A file", "is one plugin, or several, as documents of YAML.", []Key{
			{"apiVersion, kind", "rules.celsius.dev/v1alpha1, JobPlugin", "what it is"},
			{"metadata.name", "text", "by which Jobs ask for it in spec.plugins"},
			{"description", "text", "for people"},
			{"needs", "list of names", "plugins that a Job with this one gets, too, when it is created"},
			{"last", "bool", "its rows run after those of plugins that are not last; plugins else run by name"},
			{"params", "list", "the arguments that a Job may give"},
			{"variables", "list of {name, expression}", "what rows share; computed when first read, once a Job"},
			{"validations", "list of rows", "what must hold of a Job"},
			{"pods", "list of rows", "what is added to each pod when it is made, in this order"},
			{"objects", "list of rows", "what is made beside the Job"},
		}},
		{"A parameter", "is read as Go's command lines are: `--flag=value`, `--flag value`, with one dash or two; a bool needs no value.", []Key{
			{"name", "text", "by which rows read it, as params.NAME"},
			{"flag", "text", "by which a Job gives it"},
			{"type", "string, int or bool", "of its value"},
			{"default", "value", "where it is not given"},
			{"min, max", "number", "the least and the most, of an int"},
			{"pattern", "regular expression", "which a string must match as a whole"},
			{"description", "text", "for people"},
		}},
		{"A row of validations", "is asked when a Job is created, and before its first pod.", append(slices.Clone(asked),
			Key{"expression", "CEL: bool", "what must hold; without it whatever the row is asked for is wrong"},
			Key{"fieldPath", "text with CEL", "the field of the Job that is wrong; the plugin's arguments unless it says"},
			Key{"message", "text with CEL", "what is wrong, and what would be right"})},
		{"A row of pods", "adds to a pod. What the pod has of its own stays, but for variables and commands.", append(slices.Clone(asked),
			Key{"in", "containers, initContainers", "the containers that it is about"},
			Key{"container", "CEL: bool", "which of them; container is the one that is asked about"},
			Key{"env", "list of EnvVar", "variables; one of the same name is replaced"},
			Key{"ports", "list of ContainerPort", "but those whose number is there already"},
			Key{"mounts", "list of VolumeMount", "but those whose path is mounted already"},
			Key{"command, args", "list of texts", "in the place of the container's own"},
			Key{"volumes", "list of Volume", "but those whose name is there already"},
			Key{"initContainers", "list of Container", "behind those that are there, but those whose name is there already"},
			Key{"annotations, labels", "map", "but those that have a value already"},
			Key{"hostname, subdomain", "text", "unless the pod has one"})},
		{"A row of objects", "is an object that stands beside the Job from its first pod until its pods are killed.", append(slices.Clone(asked),
			Key{"object", "object with CEL", "of the kinds " + strings.Join(Kinds(), ", ")},
			Key{"once", "bool", "it stays as it was made; others follow the Job when it is scaled. Secrets are made once: the controllers " +
				"have no right to read them"})},
	}
}

// Root is something that rows see.
type Root struct {
	Name string
	Type *cel.Type
	Doc  string
}

// Roots lists what rows see.
func Roots() ([]Root, error) {
	lang, err := theLanguage()
	if err != nil {
		return nil, err
	}
	return []Root{
		{"job", lang.job.Type(), "the Job, as it is stored; a field that is absent reads as the zero value of its type, and has() tells " +
			"it apart"},
		{"params", paramsType(), "the plugin's parameters"},
		{"variables", cel.ObjectType("Variables"), "the plugin's variables"},
		{"task", lang.task.Type(), "in pods: the task of the pod"},
		{"index", cel.IntType, "in pods: the number of the pod within its task, from 0"},
		{"pod", lang.pod.Type(), "in pods: the pod so far, its metadata and spec"},
		{"container", lang.container.Type(), "in pods with `in`: the container so far"},
	}, nil
}

// Functions lists the functions of the language of job plugins, beyond the dialect's.
func Functions() ([]*rules.Function, error) {
	lang, err := theLanguage()
	if err != nil {
		return nil, err
	}
	return functions(lang.job), nil
}
