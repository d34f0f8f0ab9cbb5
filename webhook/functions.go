package webhook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corek8s "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// mistakeSchema returns the type of the elements that podTemplateMistakes returns.
func mistakeSchema() *typed.Schema {
	text := func(doc string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: doc}
	}
	return typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"field": text("The path in the template."), "message": text("What is wrong."),
	}}, "Mistake")
}

// pluginSchema returns the type of a job plugin in rows.
func pluginSchema() *typed.Schema {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": {Type: "string", Description: "Its name."},
		"needs": {
			Type: "array", Description: "The plugins that a Job with it has, too.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text},
		},
	}}, "JobPlugin")
}

// functions returns the functions that only the language of admission has.
func functions(mistake *typed.Schema) []*rules.Function {
	texts := cel.ListType(cel.StringType)
	one := func(name, doc string, o rules.Overload) *rules.Function {
		o.ID = "admission_" + name
		return &rules.Function{Name: name, Doc: doc, Overloads: []rules.Overload{o}}
	}
	a := cel.TypeParamType("A")
	return []*rules.Function{
		one("podTemplateMistakes", "What Kubernetes itself would refuse in a pod made from the template, after its defaults: a list of `field` "+
			"(a path in the template) and `message`.", rules.Overload{
			Args: []*cel.Type{cel.DynType}, Result: cel.ListType(mistake.Type()), Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val { return podTemplateMistakes(mistake, args[0]) },
		}),
		one("differences", "The paths of the fields in which two values differ, sorted: whole lists where their lengths differ, otherwise "+
			"element by element. Absent and null are the same, and so are equal amounts of resources in two forms, such as 1Gi and "+
			"1024Mi.", rules.Overload{
			Args: []*cel.Type{a, a}, Result: texts, Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val { return differences(args[0], args[1]) },
		}),
		one("cycle", "The first cycle of a graph in which the node `names[i]` points to the nodes called `edges[i]`: its names in order, the "+
			"first again as the last; empty where there is none. Edges to names that no node has are left out.", rules.Overload{
			Args: []*cel.Type{texts, cel.ListType(texts)}, Result: texts, Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val { return cycleOf(args[0], args[1]) },
		}),
		one("nearest", "The word of a list that was most likely meant by the first argument, empty where none is near: letters put in, left "+
			"out, replaced or swapped, at most a third of them.", rules.Overload{
			Args: []*cel.Type{cel.StringType, texts}, Result: cel.StringType, Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val {
				word, _ := args[0].(types.String)
				return types.String(source.Nearest(string(word), stringsOf(args[1])))
			},
		}),
	}
}

// stringsOf returns the strings of a list, without its other elements.
func stringsOf(v ref.Val) []string {
	var out []string
	list, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if s, ok := it.Next().(types.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

func differences(a, b ref.Val) ref.Val {
	x, err := typed.Plain(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, err := typed.Plain(b)
	if err != nil {
		return types.WrapErr(err)
	}
	var out []string
	differing("", x, y, func(path string) { out = append(out, path) })
	return typed.Strings(out)
}

// amountPath matches the paths of amounts of resources, such as volumes[0].volumeClaim.resources.requests.storage.
var amountPath = regexp.MustCompile(`(^|[.])resources[.](requests|limits)([.][^.[]+|\["[^"]+"])$`)

// sameAmount reports whether two values at a path are the same amount of a resource. Clients that read and write an object may write an
// amount in another form, such as 1Gi for 1024Mi.
func sameAmount(path string, a, b any) bool {
	if a == nil || b == nil || !amountPath.MatchString(path) {
		return false
	}
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}

func differing(path string, a, b any, report func(string)) {
	if typed.Same(a, b) || sameAmount(path, a, b) {
		return
	}
	x, isMap := a.(map[string]any)
	y, alsoMap := b.(map[string]any)
	if isMap && alsoMap {
		keys := sorted(x)
		for key := range y {
			if _, ok := x[key]; !ok {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			differing(typed.JoinPath(path, key), x[key], y[key], report)
		}
		return
	}
	l, isList := a.([]any)
	m, alsoList := b.([]any)
	if isList && alsoList && len(l) == len(m) {
		for i := range l {
			differing(fmt.Sprintf("%s[%d]", path, i), l[i], m[i], report)
		}
		return
	}
	report(path)
}

// cycleOf searches the graph depth first, in the order of names.
func cycleOf(names, edges ref.Val) ref.Val {
	graph := map[string][]string{}
	all := stringsOf(names)
	lists, ok := edges.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(edges)
	}
	for i, name := range all {
		if types.Int(i) < lists.Size().(types.Int) {
			graph[name] = append(graph[name], stringsOf(lists.Get(types.Int(i)))...)
		}
	}
	place := map[string]int{} // position on the path, from 1; 0: not visited, -1: finished
	var path []string
	var found []string
	var walk func(name string) bool
	walk = func(name string) bool {
		below, known := graph[name]
		switch at := place[name]; {
		case at > 0:
			found = append(slices.Clone(path[at-1:]), name)
			return true
		case at < 0 || !known:
			return false
		}
		path = append(path, name)
		place[name] = len(path)
		if slices.ContainsFunc(below, walk) {
			return true
		}
		path = path[:len(path)-1]
		place[name] = -1
		return false
	}
	_ = slices.ContainsFunc(all, walk)
	return typed.Strings(found)
}

// validationOptions accepts everything that some API server accepts. It does not know which features the cluster's API server enables, or
// whether that server allows privileged containers. The API server checks this again for each pod. Pod Security decides which pods may be
// privileged.
func validationOptions(template *core.PodTemplateSpec) corevalidation.PodValidationOptions {
	const noLimitOfBandwidth = 0
	capabilities.Setup(true, noLimitOfBandwidth) // it applies to the whole process; only the first call has an effect
	o := podapi.GetValidationOptionsFromPodTemplate(template, nil)
	for _, feature := range []*bool{
		&o.AllowContainerRestartPolicyRules, &o.AllowEnvFilesValidation, &o.AllowPodLifecycleSleepActionZeroValue,
		&o.AllowRelaxedDNSSearchValidation,
		&o.AllowRelaxedEnvironmentVariableValidation, &o.AllowRestartAllContainers, &o.AllowSidecarResizePolicy,
		&o.AllowTaintTolerationComparisonOperators, &o.AllowUserNamespacesHostNetworkSupport,
	} {
		*feature = true
	}
	o.AllowOnlyRecursiveSELinuxChangePolicy = false // an API server that mounts volumes by SELinux label accepts other policies, too
	return o
}

// podTemplateMistakes applies Kubernetes' defaults and then runs Kubernetes' validation.
func podTemplateMistakes(mistake *typed.Schema, template ref.Val) ref.Val {
	plain, err := typed.Plain(template)
	if err != nil {
		return types.WrapErr(err)
	}
	fields, _ := plain.(map[string]any) // null is treated as empty
	var out []ref.Val
	report := func(field, message string) {
		out = append(out, typed.Object(mistake, map[string]any{"field": field, "message": message}))
	}
	// Kubernetes has defaults only for the kind PodTemplate, so the template is wrapped into one.
	var wrapped corev1.PodTemplate
	var internal core.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &wrapped.Template); err != nil {
		return types.WrapErr(err) // such an object is refused before any row is evaluated
	}
	corek8s.SetObjectDefaults_PodTemplate(&wrapped)
	if err := corek8s.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&wrapped.Template, &internal, nil); err != nil {
		report("spec", "cannot be read: "+err.Error())
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	}
	root := field.NewPath("template")
	found := corevalidation.ValidatePodTemplateSpec(&internal, root, validationOptions(&internal))
	for _, e := range found[:min(len(found), mostMistakes)] {
		path := strings.TrimPrefix(e.Field, "template.")
		if strings.HasPrefix(path, "labels") || strings.HasPrefix(path, "annotations") {
			path = "metadata." + path // Kubernetes omits this prefix
		}
		report(path, e.ErrorBody())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}
