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
	// Range describes the numbers or texts that the parameter accepts; "" means any.
	Range string
}

// Row describes a row of pods or of objects.
type Row struct {
	Name, Doc string
	// Adds lists the keys that the row adds to a pod. For an object it contains the kind.
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

// PodRows lists the rows of pods.
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

// The parts of a file, as the reference names them.
const (
	partFile       = "A file"
	partParam      = "A parameter"
	partValidation = "A row of validations"
	partPod        = "A row of pods"
	partObject     = "A row of objects"
)

// keysOf returns the names of the keys of one part of a file.
func keysOf(part string) (out []string) {
	for _, names := range rules.KeysOf(Schema(), part) {
		for name := range strings.SplitSeq(names, ", ") {
			name, _, _ = strings.Cut(name, ".")
			out = append(out, name)
		}
	}
	return out
}

// Schema lists the keys of a file. Keys with one meaning are listed together, for example "min, max". The reader of the files and the
// generated reference use this list.
func Schema() []rules.Part {
	asked := []rules.Key{
		{Name: "name", Value: "text", Doc: "by which errors name the row"},
		{Name: "description", Value: "text", Doc: "for people"},
		{
			Name: "forEach", Value: "list of {item, index, in}",
			Doc: "the row is asked for each element of the lists, of which the later may read the elements of the earlier",
		},
		{Name: "when", Value: "CEL: bool", Doc: "whether the row is asked at all"},
	}
	return []rules.Part{
		{Name: partFile, Doc: "is one plugin, or several, as documents of YAML.", Keys: []rules.Key{
			{Name: "apiVersion, kind", Value: "rules.celsius.dev/v1alpha1, JobPlugin", Doc: "what it is"},
			{Name: "metadata.name", Value: "text", Doc: "by which Jobs ask for it in spec.plugins"},
			{Name: "description", Value: "text", Doc: "for people"},
			{Name: "needs", Value: "list of names", Doc: "plugins that a Job with this one gets, too, when it is created"},
			{Name: "last", Value: "bool", Doc: "its rows run after those of plugins that are not last; plugins else run by name"},
			{Name: "params", Value: "list", Doc: "the arguments that a Job may give"},
			{Name: "variables", Value: "list of {name, expression}", Doc: "what rows share; computed when first read, once a Job"},
			{Name: "validations", Value: "list of rows", Doc: "what must hold of a Job"},
			{Name: "pods", Value: "list of rows", Doc: "what is added to each pod when it is made, in this order"},
			{Name: "objects", Value: "list of rows", Doc: "what is made beside the Job"},
		}},
		{Name: partParam, Doc: "is read as Go's command lines are: `--flag=value`, `--flag value`, with one dash or two; a bool " +
			"needs no value.", Keys: []rules.Key{
			{Name: "name", Value: "text", Doc: "by which rows read it, as params.NAME"},
			{Name: "flag", Value: "text", Doc: "by which a Job gives it"},
			{Name: "type", Value: "string, int or bool", Doc: "of its value"},
			{Name: "default", Value: "value", Doc: "where it is not given"},
			{Name: "min, max", Value: "number", Doc: "the least and the most, of an int"},
			{Name: "pattern", Value: "regular expression", Doc: "which a string must match as a whole"},
			{Name: "description", Value: "text", Doc: "for people"},
		}},
		{Name: partValidation, Doc: "is asked when a Job is created, and before its first pod.", Keys: append(slices.Clone(asked),
			rules.Key{Name: "expression", Value: "CEL: bool", Doc: "what must hold; without it whatever the row is asked for is wrong"},
			rules.Key{Name: "fieldPath", Value: "text with CEL", Doc: "the field of the Job that is wrong; the plugin's arguments unless it says"},
			rules.Key{Name: "message", Value: "text with CEL", Doc: "what is wrong, and what would be right"})},
		{Name: partPod, Doc: "adds to a pod. What the pod has of its own stays, but for variables and commands.", Keys: append(
			slices.Clone(asked),
			rules.Key{Name: "in", Value: "containers, initContainers", Doc: "the containers that it is about"},
			rules.Key{Name: "container", Value: "CEL: bool", Doc: "which of them; container is the one that is asked about"},
			rules.Key{Name: "env", Value: "list of EnvVar", Doc: "variables; one of the same name is replaced"},
			rules.Key{Name: "ports", Value: "list of ContainerPort", Doc: "but those whose number is there already"},
			rules.Key{Name: "mounts", Value: "list of VolumeMount", Doc: "but those whose path is mounted already"},
			rules.Key{Name: "command, args", Value: "list of texts", Doc: "in the place of the container's own"},
			rules.Key{Name: "volumes", Value: "list of Volume", Doc: "but those whose name is there already"},
			rules.Key{Name: "initContainers", Value: "list of Container", Doc: "behind those that are there, but those whose name is there already"},
			rules.Key{Name: "annotations, labels", Value: "map", Doc: "but those that have a value already"},
			rules.Key{Name: "hostname, subdomain", Value: "text", Doc: "unless the pod has one"})},
		{Name: partObject, Doc: "is an object that stands beside the Job from its first pod until its pods are killed.", Keys: append(
			slices.Clone(asked),
			rules.Key{Name: "object", Value: "object with CEL", Doc: "of the kinds " + strings.Join(Kinds(), ", ")},
			rules.Key{Name: "once", Value: "bool", Doc: "it stays as it was made; others follow the Job when it is scaled. Secrets " +
				"are made once: the controllers have no right to read them"})},
	}
}

// Root is a variable that rows can read.
type Root struct {
	Name string
	Type *cel.Type
	Doc  string
}

// Roots lists the variables that rows can read.
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

// Functions lists the functions that only the language of job plugins has.
func Functions() ([]*rules.Function, error) {
	lang, err := theLanguage()
	if err != nil {
		return nil, err
	}
	return functions(lang.job), nil
}
