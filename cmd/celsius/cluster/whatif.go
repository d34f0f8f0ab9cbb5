package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/whatif"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// whatIfFlags define the hypothetical changes.
type whatIfFlags struct {
	files, deleted, nodes []string
	policy, output        string
}

func (t *tool) whatIfCommand() *cobra.Command {
	var f whatIfFlags
	c := &cobra.Command{
		Use:   "what-if",
		Short: "Say what would be decided if something were otherwise",
		Long: `Ask the scheduler that leads what its next cycle would decide if a job came, or
were gone, if there were more nodes, or if another policy served: whether a new
job would start at once, and where; or once which pods are gone that would be
evicted for it, and by which rows; or why it would wait, and what would help.
And what else would be decided otherwise than as things are. Nothing is changed.

Jobs, PodGroups and pods of -f are filled in and checked by the API server as if
they were created (a dry run), with your rights; a refusal is reported. One that
the cluster has already is replaced: the question is what would be decided if it
were deleted, and created as the file has it. A Queue or a Node of -f changes
the object with the same name. The scheduler does not know when running pods
end, so it does not state for how long a job would wait.

One must be allowed to create whatifs of the API group explain.celsius.dev in
the namespace, as roles edit and admin let their users; for nodes, queues,
policies and objects of several namespaces clusterwhatifs, as
celsius-explain-cluster does.`,
		Example: `  celsius what-if -f job.yaml -n team
  celsius what-if --delete job/train -n team
  celsius what-if --delete job/train -f train.yaml -n team
  celsius what-if -f job.yaml --add-nodes 4xgpu-1
  celsius what-if --policy new.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			accept, err := acceptFor(f.output)
			if err != nil {
				return err
			}
			if len(f.files)+len(f.deleted)+len(f.nodes) == 0 && f.policy == "" {
				return errors.New("what if what? Give -f, --delete, --add-nodes or --policy")
			}
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			q, of, err := f.question(c, r, namespace)
			if err != nil {
				return err
			}
			body, err := json.Marshal(q)
			if err != nil {
				return fmt.Errorf("write the question: %w", err)
			}
			text, err := r.Raw(c.Context(), questions.WhatIfPath(of), accept, body)
			if err != nil {
				return unanswered(err, idle(c.Context(), r, schedulerLease, t.Now(), time.Time{}))
			}
			return sayAnswer(c, f.output, text, "")
		},
	}
	fs := c.Flags()
	fs.StringArrayVarP(&f.files, "filename", "f", nil,
		"file of what would come: Jobs, PodGroups, Pods, Queues, Nodes; -: standard input; repeatable")
	fs.StringArrayVar(&f.deleted, "delete", nil, "job that would be gone, as job/NAME; repeatable")
	fs.StringArrayVar(&f.nodes, "add-nodes", nil, "nodes that would come, empty: so many like one that there is, as 4xgpu-1; repeatable")
	fs.StringVar(&f.policy, "policy", "", "file of the SchedulingPolicy that would serve")
	fs.StringVarP(&f.output, "output", "o", "", "json or yaml: all that would be decided, and the text; default: the text alone")
	return c
}

// question reads the hypothetical changes from the flags. It returns the question and the namespace of the question, which is "" for the
// whole cluster. The argument namespace is the default for objects without one.
func (f *whatIfFlags) question(c *cobra.Command, r *Reach, namespace string) (q *questions.WhatIf, of string, err error) {
	q, of = &questions.WhatIf{TypeMeta: metav1.TypeMeta{Kind: "WhatIf", APIVersion: questions.Group + "/" + questions.Version}}, namespace
	for _, word := range f.deleted {
		kind, name, err := whatToExplain([]string{word})
		if err != nil || kind != explain.Job {
			return nil, "", fmt.Errorf("--delete %s: write job/NAME", word)
		}
		q.Delete = append(q.Delete, name)
	}
	for _, file := range f.files {
		documents, err := readDocuments(c, file, "Job", "PodGroup", "Pod", "Queue", "Node")
		if err != nil {
			return nil, "", err
		}
		for _, d := range documents {
			raw, err := f.arriving(c, r, d, namespace)
			if err != nil {
				return nil, "", fmt.Errorf("%s, document %d: %w", file, d.number, err)
			}
			if d.object.GetNamespace() != namespace {
				of = ""
			}
			q.Add = append(q.Add, raw)
		}
	}
	if q.Copies, err = f.copies(); err != nil {
		return nil, "", err
	}
	if q.Policy, err = policyOf(f.policy); err != nil {
		return nil, "", err
	}
	if len(q.Copies) > 0 || q.Policy != nil {
		of = ""
	}
	if of == "" {
		for i, name := range q.Delete {
			q.Delete[i] = namespace + "/" + name
		}
	}
	return q, of, nil
}

// copies returns the hypothetical nodes.
func (f *whatIfFlags) copies() (out []whatif.Copies, err error) {
	for _, word := range f.nodes {
		count, like, _ := strings.Cut(word, "x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || like == "" {
			return nil, fmt.Errorf("--add-nodes %s: write how many and like which, as 4xgpu-1", word)
		}
		out = append(out, whatif.Copies{Count: n, Like: like})
	}
	return out, nil
}

// arriving returns an object as the API server would store it, with a dry run. For an object that replaces another one of its name, the dry
// run uses a name that the API server chooses. Thus this object also gets defaults and is validated.
func (f *whatIfFlags) arriving(c *cobra.Command, r *Reach, d document, namespace string) (json.RawMessage, error) {
	o := d.object.DeepCopy()
	if slices.Contains([]string{"Job", "PodGroup", "Pod"}, o.GetKind()) {
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
			d.object.SetNamespace(namespace)
		}
		err := r.Create(c.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if apierrors.IsAlreadyExists(err) {
			o = d.object.DeepCopy()
			o.SetName("")
			o.SetGenerateName(generated(d.object.GetName()))
			err = r.Create(c.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			o.SetName(d.object.GetName())
			o.SetGenerateName("")
		}
		if err != nil {
			return nil, err
		}
	}
	return o.MarshalJSON()
}

// generated returns a prefix for a generated name that replaces the given name. The result has the same length, because some rules limit
// the length.
func generated(name string) string {
	const random = 5 // characters that the API server appends
	return name[:max(min(len(name)-random, 63-random), 1)]
}

// policyOf reads a SchedulingPolicy if a file is given. The scheduler compiles it.
func policyOf(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	out, err := source.FirstToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("--policy %s: %w", file, err)
	}
	return out, nil
}
