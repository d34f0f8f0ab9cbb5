package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// podColumns are the columns of lists of pods, with the names that the API server uses.
var podColumns = []struct{ title, of string }{
	{"Name", "Name"}, {"Ready", "Ready"}, {"Status", "Status"}, {"Restart", "Restarts"}, {"Age", "Age"},
}

// podsOf selects the pods of Jobs, of one Job, or of a queue.
type podsOf struct{ queue, job string }

// selector returns a label selector for the part that labels can select.
func (p podsOf) selector() string {
	switch {
	case p.job != "":
		return labels.Set{batchv1alpha1.JobNameKey: p.job}.String()
	case p.queue != "":
		return ""
	}
	return batchv1alpha1.JobNameKey
}

// keeps reports whether a pod is selected.
func (p podsOf) keeps(m *metav1.PartialObjectMetadata) (bool, error) {
	if p.queue == "" {
		return true, nil
	}
	label := m.Labels[batchv1alpha1.QueueNameKey]
	is := label == p.queue || m.Annotations[schedulingv1beta1.QueueNameAnnotationKey] == p.queue
	if p.job != "" && label != p.queue {
		return false, fmt.Errorf("pod %s of Job %s is in queue %q, not in %s", m.Name, p.job, label, p.queue)
	}
	return is, nil
}

// rows lists the pods, sorted by namespace and name.
func (p podsOf) rows(ctx context.Context, r *Reach, namespace string, all bool, named func(string) string) (rows [][]string, err error) {
	table, err := r.Table(ctx, namespace, metav1.ListOptions{LabelSelector: p.selector()})
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, c := range table.ColumnDefinitions {
		at[c.Name] = i
	}
	for i := range table.Rows {
		m := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, m); err != nil {
			return nil, fmt.Errorf("read a row of the list of pods: %w", err)
		}
		if keep, err := p.keeps(m); err != nil {
			return nil, err
		} else if !keep {
			continue
		}
		var row []string
		if all {
			row = append(row, m.Namespace)
		}
		for _, c := range podColumns {
			cell := "-"
			if k, ok := at[c.of]; ok && k < len(table.Rows[i].Cells) {
				cell = fmt.Sprint(table.Rows[i].Cells[k])
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, slices.Compare)
	if len(rows) == 0 {
		return nil, nil
	}
	var titles []string
	if all {
		titles = append(titles, named("Namespace"))
	}
	for _, c := range podColumns {
		titles = append(titles, named(c.title))
	}
	return append([][]string{titles}, rows...), nil
}

func (t *tool) podCommand() *cobra.Command {
	var p podsOf
	var all, bare bool
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the pods of Jobs, of one Job or of a queue", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, namespace, err := t.reach(all)
			if err != nil {
				return err
			}
			rows, err := p.rows(c.Context(), r, namespace, all, upper)
			if err != nil {
				return err
			}
			if rows == nil {
				say(c.ErrOrStderr(), "No resources found\n")
				return nil
			}
			if bare {
				rows = rows[1:]
			}
			newGrid(c.OutOrStdout(), t.Env).print(rows)
			return nil
		},
	}
	f := list.Flags()
	f.BoolVarP(&all, "all-namespaces", "A", false, "those of all namespaces")
	f.StringVarP(&p.queue, "queue", "q", "", "only those of this queue")
	f.StringVarP(&p.job, "job", "j", "", "only those of this Job")
	bareFlag(list, &bare)
	_ = list.RegisterFlagCompletionFunc("queue", t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false))
	_ = list.RegisterFlagCompletionFunc("job", t.named(batchv1alpha1.GroupVersion.String(), "Job", true))
	c := &cobra.Command{Use: "pod", Aliases: []string{"pods"}, Short: "List the pods of Jobs"}
	c.AddCommand(list)
	return c
}

// upper and asIs format the titles of columns: upper as kubectl does, and asIs as Volcano's programs do.
func upper(title string) string { return strings.ToUpper(title) }
func asIs(title string) string  { return title }
