package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// groupsKind is the kind of a file of resource groups, which map pods to nodes. Its list has the same form as Volcano's.
const groupsKind = "ResourceGroups"

// volcanosGroups is the name of the table that is created from Volcano's own file.
const volcanosGroups = "volcano-resource-groups"

// resourceGroupKey is the annotation in which a pod names its group, unless the group defines another selector.
const resourceGroupKey = "volcano.sh/resource-group"

// resourceGroup defines what is written into the pods of a group. A pod belongs to the first group that selects it.
type resourceGroup struct {
	row    *row // its name and its optional when
	by     *selector
	writes writes
}

// selector selects pods by namespace, annotation or label.
type selector struct {
	key    string
	values []string
}

// The values of a selector's key.
const (
	byNamespace  = "namespace"
	byAnnotation = "annotation"
	byLabel      = "label"
)

// writes contains what a group writes into a pod.
type writes struct {
	schedulerName                           string
	nodeSelector, podLabels, podAnnotations map[string]any
	affinity                                map[string]any
	tolerations                             []any
}

// isGroups reports whether a document contains resource groups.
func isGroups(root source.Value) bool {
	var ignored source.Issues // the reader of the document reports them
	return root.Get("kind").String(&ignored) == groupsKind || isVolcanos(root)
}

// isVolcanos reports whether a document is Volcano's own configuration, as its chart mounts it: the list, without a kind.
func isVolcanos(root source.Value) bool {
	return !root.Get("kind").Exists() && !root.Get("apiVersion").Exists() && root.Get("resourceGroups").Exists()
}

// loadGroups compiles a file of resource groups into a table of Pods that contains only these groups.
func loadGroups(doc *source.Document) (*Table, source.Issues) {
	c := &compiler{table: &Table{}, names: map[string]source.Value{}}
	root := doc.Root
	root.Fields(keysOf("groups"), &c.issues)
	if isVolcanos(root) {
		c.table.Name = volcanosGroups
	} else {
		c.header(root, groupsKind)
	}
	if err := c.about(podKind, root); err != nil {
		return nil, append(c.issues, root.Issuef("", "%v", err))
	}
	if len(c.issues) == 0 {
		c.need(root, []string{"resourceGroups"})
	}
	for _, item := range root.Get("resourceGroups").Items(&c.issues) {
		c.table.groups = append(c.table.groups, c.group(item))
	}
	c.issues.Sort()
	if c.issues.Err() != nil {
		return nil, c.issues
	}
	return c.table, c.issues
}

func (c *compiler) group(item source.Value) *resourceGroup {
	item.Fields(keysOf("group"), &c.issues)
	c.need(item, []string{"resourceGroup"})
	g := &resourceGroup{row: &row{name: c.unique(item.Get("resourceGroup"))}}
	if when := item.Get("when"); when.Exists() {
		g.row.when = c.compile(when.Text(&c.issues), nil, rules.Bool())
	}
	if object := item.Get("object"); object.Exists() || g.row.when == nil {
		g.by = c.selector(object, g.row.name)
	}
	g.writes = writes{
		schedulerName: item.Get("schedulerName").String(&c.issues), nodeSelector: c.texts(item.Get("labels")),
		podLabels: c.texts(item.Get("podLabels")), podAnnotations: c.texts(item.Get("podAnnotations")),
	}
	if affinity := item.Get("affinity"); affinity.Exists() {
		g.writes.affinity, _ = c.part(affinity, typed.Path{}.Key("spec").Key("affinity")).(map[string]any)
	}
	if tolerations := item.Get("tolerations"); tolerations.Exists() {
		g.writes.tolerations, _ = c.part(tolerations, typed.Path{}.Key("spec").Key("tolerations")).([]any)
	}
	if c.issues.Err() == nil {
		c.legal(item, g)
	}
	return g
}

// legal reports what Kubernetes would refuse in each pod of the group.
func (c *compiler) legal(item source.Value, g *resourceGroup) {
	template := g.writes.into(map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "main"}},
	}})
	list, _ := podTemplateMistakes(c.table.mistake, types.DefaultTypeAdapter.NativeToValue(template)).(traits.Lister)
	if list == nil {
		return
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		plain, _ := typed.Plain(it.Next())
		m, _ := plain.(map[string]any)
		c.report(item.Issuef("", "no pod may have what the group %s writes: %v: %v", g.row.name, m["field"], m["message"]))
	}
}

// selector reads which pods belong to a group. With an empty key, pods name the group in the annotation resourceGroupKey.
func (c *compiler) selector(object source.Value, group string) *selector {
	object.Fields(keysOf("selector"), &c.issues)
	s := &selector{key: object.Get("key").String(&c.issues), values: object.Get("value").Strings(&c.issues)}
	switch s.key {
	case "":
		return &selector{key: byAnnotation, values: []string{resourceGroupKey + ": " + group}}
	case byNamespace, byAnnotation, byLabel:
		c.need(object, []string{"value"})
	default:
		c.report(object.Get("key").Issuef("write namespace, annotation or label, or leave it out for the annotation "+resourceGroupKey,
			"pods are told by no %q", s.key))
	}
	for i, value := range s.values {
		if s.key == byNamespace {
			continue
		}
		if key, _, ok := keyAndValue(value); !ok || key == "" {
			c.report(object.Get("value").Issuef(`write it as "key: value", in quotes`, "value %d, %q, is no %s", i+1, value, s.key))
		}
	}
	return s
}

// keyAndValue splits a text of the form "key: value".
func keyAndValue(text string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(text, ":")
	return strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`), ok
}

// texts reads a map of strings.
func (c *compiler) texts(v source.Value) map[string]any {
	given, _ := c.part(v, typed.Path{}.Key("spec").Key("nodeSelector")).(map[string]any)
	return given
}

// part reads the value for the pod's field at the path. The value is YAML, or a string that contains JSON.
func (c *compiler) part(v source.Value, path typed.Path) any {
	if !v.Exists() {
		return nil
	}
	given := v.Any()
	text, isText := given.(string)
	if isText && strings.TrimSpace(text) == "" {
		return nil
	}
	if !isText {
		data, err := json.Marshal(given)
		if err != nil {
			c.report(v.Issuef("", "it has no form in JSON: %v", err))
			return nil
		}
		text = string(data)
	}
	var out any
	if err := kubejson.Unmarshal([]byte(text), &out); err != nil {
		c.report(v.Issuef("write it as YAML, or as the text of its JSON", "it cannot be read: %v", err))
		return nil
	}
	c.known(v, "", path, out)
	c.table.object.At(path).Check("", out, func(at, message string) {
		c.report(inside(v, at).Issuef("", "%s", message))
	})
	return out
}

// inside returns the value at a path below v, to place an issue. If v is a string that contains JSON, it returns v.
func inside(v source.Value, path string) source.Value {
	if path == "" {
		return v
	}
	found, _ := v.Document().Find(v.Path() + "." + strings.TrimPrefix(path, "."))
	if strings.HasPrefix(path, "[") {
		found, _ = v.Document().Find(v.Path() + path)
	}
	return found
}

// known reports fields that pods do not have.
func (c *compiler) known(v source.Value, within string, path typed.Path, given any) {
	schema := c.table.object.At(path)
	switch at := given.(type) {
	case map[string]any:
		for _, key := range sorted(at) {
			below, place := path.Key(key), typed.JoinPath(within, key)
			if c.table.object.At(below) == nil && schema != nil && !schema.IsAny() {
				c.report(inside(v, place).Issuef("write it as a pod has it", "a pod has no field %s", below))
				continue
			}
			c.known(v, place, below, at[key])
		}
	case []any:
		for i, item := range at {
			c.known(v, fmt.Sprintf("%s[%d]", within, i), path.Index(i), item)
		}
	}
}

// grouped applies the writes of the first group that selects the pod.
func (f *frame) grouped(object map[string]any) (map[string]any, error) {
	for _, g := range f.table.groups {
		if g.by != nil && !g.by.fits(object) {
			continue
		}
		if g.row.when != nil {
			v := &visit{Activation: f, row: g.row}
			if yes, err := v.ask(g.row.when); err != nil {
				return nil, fmt.Errorf("resource group %s: %w", g.row.name, err)
			} else if !yes {
				continue
			}
		}
		return g.writes.into(object), nil
	}
	return object, nil
}

func (s *selector) fits(pod map[string]any) bool {
	metadata, _ := pod["metadata"].(map[string]any)
	if s.key == byNamespace {
		namespace, _ := metadata["namespace"].(string)
		return slices.Contains(s.values, namespace)
	}
	of, _ := metadata[s.key+"s"].(map[string]any)
	return slices.ContainsFunc(s.values, func(text string) bool {
		key, value, _ := keyAndValue(text)
		return of[key] == value
	})
}

// into returns a copy of the pod with the group's writes. Labels, annotations and an affinity that the pod has stay. A toleration that it
// has is not added again.
func (w writes) into(pod map[string]any) map[string]any {
	pod = maps.Clone(pod)
	spec, metadata := fieldsOf(pod, "spec"), fieldsOf(pod, "metadata")
	if len(w.nodeSelector) > 0 {
		spec["nodeSelector"] = over(spec["nodeSelector"], w.nodeSelector)
	}
	for key, given := range map[string]map[string]any{"labels": w.podLabels, "annotations": w.podAnnotations} {
		if len(given) > 0 {
			has, _ := metadata[key].(map[string]any)
			metadata[key] = over(given, has)
		}
	}
	if spec["affinity"] == nil && w.affinity != nil {
		spec["affinity"] = w.affinity
	}
	tolerations, _ := spec["tolerations"].([]any)
	for _, t := range w.tolerations {
		if !slices.ContainsFunc(tolerations, func(has any) bool { return typed.Same(has, t) }) {
			tolerations = append(slices.Clip(tolerations), t)
		}
	}
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	}
	if w.schedulerName != "" {
		spec["schedulerName"] = w.schedulerName
	}
	pod["spec"] = spec
	if len(metadata) > 0 {
		pod["metadata"] = metadata
	}
	return pod
}

func fieldsOf(object map[string]any, key string) map[string]any {
	out := map[string]any{}
	fields, _ := object[key].(map[string]any)
	maps.Copy(out, fields)
	return out
}

// over returns a map with the entries of both maps. The entries of above win.
func over(below any, above map[string]any) map[string]any {
	out := map[string]any{}
	fields, _ := below.(map[string]any)
	maps.Copy(out, fields)
	maps.Copy(out, above)
	return out
}
