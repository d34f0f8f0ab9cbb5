package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// flowKind is JobFlow or JobTemplate. The same commands exist for both.
type flowKind struct {
	kind, command, called string
	new                   func() client.Object
	list                  func() client.ObjectList
}

func jobFlows() flowKind {
	return flowKind{
		"JobFlow", "jobflow", "jobflow.flow.volcano.sh",
		func() client.Object { return &flowv1alpha1.JobFlow{} }, func() client.ObjectList { return &flowv1alpha1.JobFlowList{} },
	}
}

func jobTemplates() flowKind {
	return flowKind{
		"JobTemplate", "jobtemplate", "jobtemplate.flow.volcano.sh",
		func() client.Object { return &flowv1alpha1.JobTemplate{} }, func() client.ObjectList { return &flowv1alpha1.JobTemplateList{} },
	}
}

// columns returns a name, the phase of a JobFlow, and an age.
func (k flowKind) columns(t *tool, named func(string) string) []column[client.Object] {
	out := []column[client.Object]{{name: named("Name"), of: client.Object.GetName}}
	if k.kind == "JobFlow" {
		out = append(out, column[client.Object]{name: named("Phase"), of: func(o client.Object) string {
			flow, ok := o.(*flowv1alpha1.JobFlow)
			if !ok {
				return "-"
			}
			return cmp.Or(string(flow.Status.State.Phase), string(flowv1alpha1.Pending))
		}})
	}
	return append(out, column[client.Object]{name: named("Age"), of: func(o client.Object) string {
		return age(t.Now(), o.GetCreationTimestamp())
	}})
}

func (t *tool) flowCommand(k flowKind) *cobra.Command {
	c := &cobra.Command{
		Use: k.command, Aliases: []string{k.command + "s"}, Short: "Create, list, get, describe and delete " + k.kind + "s",
	}
	c.AddCommand(t.createFlowCommand(k), t.listFlowsCommand(k), t.getFlowCommand(k),
		t.deleteCommand(k.new(), k.kind, k.called, flowv1alpha1.GroupVersion.String(), true))
	return c
}

func (t *tool) createFlowCommand(k flowKind) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "create -f FILE", Short: "Make the " + k.kind + "s of a file", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			return t.createFrom(c, r, file, *t.flags.Namespace, namespace, k.kind, k.called)
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "file, as YAML or JSON; -: standard input")
	_ = c.MarkFlagRequired("filename")
	return c
}

func (t *tool) listFlowsCommand(k flowKind) *cobra.Command {
	var o outputFlags
	var all bool
	var selector string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + k.kind + "s", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, namespace, err := t.reach(all)
			if err != nil {
				return err
			}
			of, err := optionsOf(namespace, selector)
			if err != nil {
				return err
			}
			columns := k.columns(t, upper)
			if all {
				columns = slices.Insert(columns, 0, column[client.Object]{name: "NAMESPACE", of: client.Object.GetNamespace})
			}
			return listing[client.Object]{tool: t, flags: &o, columns: columns}.show(c, r, k.list(), of)
		},
	}
	o.register(c, true)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "those of all namespaces")
	selectorFlag(c, &selector)
	return c
}

func (t *tool) getFlowCommand(k flowKind) *cobra.Command {
	var o outputFlags
	c := &cobra.Command{
		Use: "get NAME", Aliases: []string{"describe"}, Short: "Show one " + k.kind + "; with -o yaml all of it", Args: cobra.ExactArgs(1),
		ValidArgsFunction: t.named(flowv1alpha1.GroupVersion.String(), k.kind, true),
		RunE: func(c *cobra.Command, args []string) error {
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			found := k.new()
			if err := r.Get(c.Context(), types.NamespacedName{Namespace: namespace, Name: args[0]}, found); err != nil {
				return err
			}
			return listing[client.Object]{tool: t, flags: &o, columns: k.columns(t, upper)}.showOne(c, r, found)
		},
	}
	o.register(c, false)
	return c
}

// document is one object of a file.
type document struct {
	number int // from 1
	object *unstructured.Unstructured
}

// readDocuments reads the objects of a file. Their kind must be one of kinds.
func readDocuments(c *cobra.Command, file string, kinds ...string) ([]document, error) {
	kind := strings.Join(kinds, " or ")
	data, err := io.ReadAll(c.InOrStdin())
	if file != "-" {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	docs, err := source.ToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s, %w", file, err)
	}
	var out []document
	for _, d := range docs {
		o := map[string]any{}
		if err := json.Unmarshal(d.JSON, &o); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, d.Number, err)
		}
		if len(o) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: o}
		if !slices.Contains(kinds, u.GetKind()) {
			return nil, fmt.Errorf("%s, document %d: it is of kind %q, want %s", file, d.Number, u.GetKind(), kind)
		}
		out = append(out, document{d.Number, u})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there is no %s in it", file, kind)
	}
	return out, nil
}

// create creates an object as it is written. Fields that its kind does not have are refused.
func create(ctx context.Context, r *Reach, o *unstructured.Unstructured) error {
	return r.Create(ctx, o, client.FieldValidation(metav1.FieldValidationStrict))
}

// createFrom creates the objects of a file. A mistake in one object does not prevent the creation of the others.
func (t *tool) createFrom(c *cobra.Command, r *Reach, file, asked, namespace, kind, called string) error {
	documents, err := readDocuments(c, file, kind)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range documents {
		switch has := d.object.GetNamespace(); {
		case has == "":
			d.object.SetNamespace(namespace)
		case asked != "" && has != asked:
			errs = append(errs, fmt.Errorf("%s, document %d: it is of namespace %s, and --namespace says %s", file, d.number, has, asked))
			continue
		}
		if err := create(c.Context(), r, d.object); err != nil {
			errs = append(errs, fmt.Errorf("%s, document %d: %w", file, d.number, err))
			continue
		}
		say(c.OutOrStdout(), "%s/%s created\n", called, d.object.GetName())
	}
	return errors.Join(errs...)
}
