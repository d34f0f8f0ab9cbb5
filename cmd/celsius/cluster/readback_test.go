package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/serving"
)

// changes are the commands that change something in a cluster, with arguments that the world of testdata accepts. A command that is missing
// here fails TestChangesAreListed.
func changes() map[string]string {
	return map[string]string{
		"celsius job run":            "celsius job run new -n team",
		"celsius job suspend":        "celsius job suspend train -n team",
		"celsius job resume":         "celsius job resume train -n team",
		"celsius job delete":         "celsius job delete train -n team",
		"celsius queue create":       "celsius queue create new",
		"celsius queue operate":      "celsius queue operate research --action close",
		"celsius queue delete":       "celsius queue delete research",
		"celsius jobflow create":     "celsius jobflow create -f testdata/weekly.yaml -n team",
		"celsius jobflow delete":     "celsius jobflow delete nightly -n team",
		"celsius jobtemplate create": "celsius jobtemplate create -f testdata/templates.yaml -n team",
		"celsius jobtemplate delete": "celsius jobtemplate delete load -n team",
		"vcctl job run":              "vcctl job run -N new -n team",
		"vcctl job suspend":          "vcctl job suspend -N train -n team",
		"vcctl job resume":           "vcctl job resume -N train -n team",
		"vcctl job delete":           "vcctl job delete -N train -n team",
		"vcctl queue create":         "vcctl queue create -n new",
		"vcctl queue operate":        "vcctl queue operate -n research -a close",
		"vcctl queue delete":         "vcctl queue delete -n research",
		"vcctl jobflow create":       "vcctl jobflow create -f testdata/weekly.yaml",
		"vcctl jobflow delete":       "vcctl jobflow delete -N nightly -n team",
		"vcctl jobtemplate create":   "vcctl jobtemplate create -f testdata/templates.yaml",
		"vcctl jobtemplate delete":   "vcctl jobtemplate delete -N load -n team",
		"vsub":                       "vsub -n new -N team",
		"vcancel":                    "vcancel -n train -N team",
		"vsuspend":                   "vsuspend -n train -N team",
		"vresume":                    "vresume -n train -N team",
		"celsius policy rollback":    "celsius policy rollback house",
		"celsius policy promote":     "celsius policy promote lab --to all",
	}
}

// reads are the commands that change nothing in a cluster. They write files at most.
func reads() []string {
	return []string{
		"celsius dashboard", "celsius explain", "celsius job list", "celsius job view", "celsius jobflow describe", "celsius jobflow get",
		"celsius jobflow list", "celsius jobtemplate describe", "celsius jobtemplate get", "celsius jobtemplate list", "celsius pod list",
		"celsius policy revisions", "celsius policy shadows", "celsius queue get", "celsius queue list", "celsius snapshot",
		"celsius support-bundle", "celsius top jobs", "celsius top nodes", "celsius top queues", "celsius what-if", "vcctl job list",
		"vcctl job view", "vcctl jobflow describe", "vcctl jobflow get", "vcctl jobflow list", "vcctl jobtemplate describe",
		"vcctl jobtemplate get", "vcctl jobtemplate list", "vcctl pod list", "vcctl queue get", "vcctl queue list", "vcctl version", "vjobs",
		"vqueues",
	}
}

// changeable returns a world with the objects that the commands in changes need: a policy with an earlier revision, and a policy for one
// queue.
func changeable(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	policy := func(name, spec string) string {
		return `{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	}
	for _, object := range []string{
		policy("house", `{"pipeline":["allocate"]}`), policy("lab", `{"queues":"queue.name == 'lab'","pipeline":["backfill"]}`),
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	served := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "celsius-policy-1", Labels: map[string]string{
			serving.LabelScheduler: "celsius", serving.LabelPolicy: "house", serving.LabelGeneration: "1",
		}},
		Revision: 1, Data: runtime.RawExtension{Raw: []byte(policy("house", `{"pipeline":["backfill"]}`))},
	}
	if err := w.client.Create(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestDroppedWrites runs each command that changes something with a client that loses its writes without an error. No command may report
// success. With a client that writes, each command reports success.
func TestDroppedWrites(t *testing.T) {
	for name, line := range changes() {
		t.Run(name, func(t *testing.T) {
			w := changeable(t)
			if got := w.run(line); strings.Contains(got, "[exit code") {
				t.Fatalf("it fails where writes are not lost:\n%s", got)
			}
			w = changeable(t)
			w.client = interceptor.NewClient(w.client, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					if o.GetName() == "" {
						o.SetName(o.GetGenerateName() + "x")
					}
					return nil
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil },
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return nil },
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return nil
				},
			})
			if got := w.run(line); !strings.Contains(got, "[exit code") {
				t.Errorf("it reports success, though nothing was written:\n%s", got)
			}
		})
	}
}

// TestWeightIsReadBack loses the change of a weight.
func TestWeightIsReadBack(t *testing.T) {
	for _, line := range []string{
		"celsius queue operate research --action update --weight 7", "vcctl queue operate -n research -a update -w 7",
	} {
		w := newWorld(t)
		if got := w.run(line); strings.Contains(got, "[exit code") {
			t.Fatalf("%s: %s", line, got)
		}
		w = newWorld(t)
		w.client = interceptor.NewClient(w.client, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return nil
			},
		})
		if got := w.run(line); !strings.Contains(got, "differs from it") {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestUnknownWrites runs each command with a client that writes. Later reads get no answer from the API server. No command may report
// success.
func TestUnknownWrites(t *testing.T) {
	for name, line := range changes() {
		t.Run(name, func(t *testing.T) {
			w, written := changeable(t), false
			late := apierrors.NewTimeoutError("the API server did not answer in time", 1)
			w.client = interceptor.NewClient(w.client, interceptor.Funcs{
				Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
					written = true
					return to.Create(ctx, o, options...)
				},
				Delete: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					written = true
					return to.Delete(ctx, o, options...)
				},
				Update: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.UpdateOption) error {
					written = true
					return to.Update(ctx, o, options...)
				},
				Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if written {
						return late
					}
					return to.Get(ctx, key, o, options...)
				},
			})
			if got := w.run(line); !written || !strings.Contains(got, "[exit code") || !strings.Contains(got, "did not answer in time") {
				t.Errorf("it reports success, or not why it is unknown:\n%s", got)
			}
		})
	}
}

// TestChangesAreListed compares the two lists with the existing commands. Each command must be in one of them: it only reads, or it changes
// something and TestDroppedWrites loses its writes.
func TestChangesAreListed(t *testing.T) {
	listed, known := changes(), reads()
	for _, program := range []string{"celsius", "vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"} {
		var walk func(c *cobra.Command, path string)
		walk = func(c *cobra.Command, path string) {
			for _, sub := range c.Commands() {
				walk(sub, path+" "+sub.Name())
			}
			if !c.HasSubCommands() && (listed[path] == "") != slices.Contains(known, path) {
				t.Errorf("%s is to be either in the table of commands that change something or in the one of commands that read", path)
			}
		}
		walk(newWorld(t).program(program), program)
	}
}

// TestStatesAreReadBack runs controllers that carry out Commands. The commands must report the resulting state.
func TestStatesAreReadBack(t *testing.T) {
	for _, c := range []struct {
		line, want string
		act        func(context.Context, client.WithWatch) error
	}{
		{"celsius job suspend train -n team", "job.batch.volcano.sh/train is Aborted\n", setPhase(batchv1alpha1.Aborted)},
		{"celsius job resume train -n team", "job.batch.volcano.sh/train is Restarting\n", setPhase(batchv1alpha1.Restarting)},
		{
			"celsius queue operate research --action close", "queue.scheduling.volcano.sh/research is Closing\n",
			setState(schedulingv1beta1.QueueStateClosing),
		},
		{
			"celsius queue operate research --action open", "queue.scheduling.volcano.sh/research is Open\n",
			setState(schedulingv1beta1.QueueStateOpen),
		},
		{
			"celsius job resume train -n team", "the Command is gone, and train is still Completed: the controllers do not take this action",
			setPhase(batchv1alpha1.Completed),
		},
	} {
		w := newWorld(t)
		w.client = interceptor.NewClient(w.client, interceptor.Funcs{
			Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := to.Create(ctx, o, options...); err != nil {
					return err
				}
				if _, ok := o.(*busv1alpha1.Command); !ok {
					return nil
				}
				if err := to.Delete(ctx, o.DeepCopyObject().(client.Object)); err != nil {
					return err
				}
				return c.act(ctx, to)
			},
		})
		if got := w.run(c.line); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.line, got, c.want)
		}
	}
}

func setPhase(phase batchv1alpha1.JobPhase) func(context.Context, client.WithWatch) error {
	return func(ctx context.Context, to client.WithWatch) error {
		job := &batchv1alpha1.Job{}
		if err := to.Get(ctx, client.ObjectKey{Namespace: "team", Name: "train"}, job); err != nil {
			return err
		}
		job.Status.State.Phase = phase
		return to.Update(ctx, job)
	}
}

func setState(state schedulingv1beta1.QueueState) func(context.Context, client.WithWatch) error {
	return func(ctx context.Context, to client.WithWatch) error {
		queue := &schedulingv1beta1.Queue{}
		if err := to.Get(ctx, client.ObjectKey{Name: "research"}, queue); err != nil {
			return err
		}
		queue.Status.State = state
		return to.Update(ctx, queue)
	}
}

// TestConflictsAreRetried lets another client change the policy between the read and the write of a change.
func TestConflictsAreRetried(t *testing.T) {
	w := newWorld(t).client
	policy := &unstructured.Unstructured{}
	if err := policy.UnmarshalJSON([]byte(`{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy",` +
		`"metadata":{"name":"default"},"spec":{"mode":"Active","pipeline":["allocate"]}}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	updates := 0
	r := &Reach{WithWatch: interceptor.NewClient(w, interceptor.Funcs{
		Update: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if updates++; updates <= 2 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "schedulingpolicies"}, o.GetName(), nil)
			}
			return to.Update(ctx, o, options...)
		},
	})}
	changed := func(stored *unstructured.Unstructured) error {
		return unstructured.SetNestedField(stored.Object, "Paused", "spec", "mode")
	}
	now, err := r.changePolicy(t.Context(), "default", false, changed)
	if err != nil || updates != 3 {
		t.Fatalf("after %d updates: %v", updates, err)
	}
	if mode, _, _ := unstructured.NestedString(now.Object, "spec", "mode"); mode != "Paused" {
		t.Errorf("the mode is %q", mode)
	}
	r.WithWatch = interceptor.NewClient(w, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return nil },
	})
	if _, err := r.changePolicy(t.Context(), "default", false, func(stored *unstructured.Unstructured) error {
		return unstructured.SetNestedField(stored.Object, "Active", "spec", "mode")
	}); err == nil || !strings.Contains(err.Error(), "differs from it") {
		t.Errorf("a change that was lost: %v", err)
	}
}
