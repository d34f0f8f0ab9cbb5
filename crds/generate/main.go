// Command generate finishes the manifests that controller-gen wrote: it takes out the
// descriptions of types that are not ours (with them the Job's manifest is larger than
// client-side apply can hold), writes ours where they are missing, keeps what
// controller-gen would have pruned, and refuses what the Go types cannot decode.
//
//	Go types --controller-gen--> manifests --generate--> the same files, finished
//
// Its argument is the folder of the manifests. Run twice it changes nothing more.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER-OF-MANIFESTS")
		os.Exit(2)
	}
	if err := finishAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// finishAll rewrites every manifest of the folder in place.
func finishAll(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no manifest (*.yaml)", folder)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		finished, err := finish(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, finished, 0o644); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	return nil
}

// finish gives the finished text of one manifest.
func finish(raw []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	kind, schemas, err := schemasOf(crd)
	if err != nil {
		return nil, err
	}
	t, err := goType(kind)
	if err != nil {
		return nil, err
	}
	for _, schema := range schemas {
		walk(schema, nil, func(node map[string]any, path []string) {
			describe(kind, node, path)
			partial(kind, node, path)
		})
		if err := strict(schema, t, kind); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return append([]byte("# Generated from the Go types in crds/ by make generate; do not edit.\n"), text...), nil
}

// schemasOf gives the kind that a manifest defines, and the schema of each version.
func schemasOf(crd map[string]any) (kind string, schemas []map[string]any, err error) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ = names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	for i, v := range versions {
		version, _ := v.(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		schema, ok := holder["openAPIV3Schema"].(map[string]any)
		if !ok {
			return "", nil, fmt.Errorf("spec.versions[%d].schema.openAPIV3Schema is missing", i)
		}
		schemas = append(schemas, schema)
	}
	if kind == "" || len(schemas) == 0 {
		return "", nil, fmt.Errorf("not a CustomResourceDefinition: spec.names.kind or spec.versions is missing")
	}
	return kind, schemas, nil
}

// walk calls visit for a schema and for every schema below it. A path has the names of
// fields, "[]" for the items of a list and "{}" for the values of a map.
func walk(schema map[string]any, path []string, visit func(schema map[string]any, path []string)) {
	visit(schema, path)
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, p := range properties { // the order does not matter: each is changed by itself
			if property, ok := p.(map[string]any); ok {
				walk(property, append(slices.Clip(path), name), visit)
			}
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		walk(items, append(slices.Clip(path), "[]"), visit)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		walk(values, append(slices.Clip(path), "{}"), visit)
	}
}

// unbroken takes the line breaks of the Go source out of a description: kubectl explain breaks the
// lines again, at a width of its own. Paragraphs and the items of lists stay apart.
func unbroken(text string) string {
	lines := strings.Split(text, "\n")
	var out strings.Builder
	out.WriteString(lines[0])
	for i, line := range lines[1:] {
		before := lines[i]
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(before, " ")
		if line == "" || before == "" || indented || strings.HasPrefix(line, "- ") {
			out.WriteString("\n")
		} else {
			out.WriteString(" ")
		}
		out.WriteString(line)
	}
	return out.String()
}

// describe puts right the description of one schema.
func describe(kind string, schema map[string]any, path []string) {
	if text, ok := schema["description"].(string); ok {
		schema["description"] = unbroken(text)
	}
	if len(path) == 1 {
		if text, ok := typeMeta[path[0]]; ok {
			schema["description"] = text
		}
	}
	place := kind + "." + strings.Join(path, ".")
	for _, f := range foreign {
		below, ok := strings.CutPrefix(place, f.path+".")
		if !ok {
			continue
		}
		delete(schema, "description")
		if text, ok := f.text[below]; ok {
			schema["description"] = text
		}
		if f.keepMetadata && below == "metadata" {
			// What a template's metadata may hold is more than the schema lists, and
			// manifests written by programs carry creationTimestamp: null.
			schema[preserveUnknown] = true
		}
	}
}

// patches is where what is merged into something else begins.
const patches = "JobFlow.spec.flows.[].patch.jobSpec"

// partial has a patch say nothing but what its author said: what the schema filled in would overrule what it is merged into, and what it
// is merged into has what must be there. What keys lists of Kubernetes' own types stays.
func partial(kind string, schema map[string]any, path []string) {
	below, ok := strings.CutPrefix(kind+"."+strings.Join(path, "."), patches)
	if !ok {
		return
	}
	if !strings.Contains(below, ".template.") && !strings.Contains(below, ".volumeClaim.") {
		delete(schema, "default")
	}
	if strings.HasSuffix(below, ".template.spec") {
		delete(schema, "required")
	}
}
