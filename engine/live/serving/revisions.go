package serving

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Labels of a stored policy. A policy without a UID is the embedded default.
const (
	LabelScheduler  = "celsius.dev/scheduler"
	LabelPolicy     = "celsius.dev/policy"
	LabelGeneration = "celsius.dev/policy-generation"
	LabelUID        = "celsius.dev/policy-uid"
	// LabelQueues is "true" if the policy served its own queues alongside another policy.
	LabelQueues = "celsius.dev/policy-queues"
)

// mostRevisions is the maximum number of fit generations that are stored for each existing policy, and for all deleted policies together.
// The same number of unfit generations is stored separately, so that they do not displace fit ones.
const mostRevisions = 10

// revisions contains the policies that served one scheduler. They are stored as ControllerRevisions, as `kubectl rollout` uses them for a
// DaemonSet, and for the same purpose.
type revisions struct {
	reader    client.Reader
	client    client.Client
	namespace string
	scheduler string
	// If loaded, newest contains the stored revisions, newest first, except changes of other clients since then.
	loaded bool
	newest []*appsv1.ControllerRevision
	// heads and compiled cache the policies in revisions, by revision name.
	heads, compiled map[string]*candidate
}

// load reads the revisions.
func (r *revisions) load(ctx context.Context) error {
	var list appsv1.ControllerRevisionList
	if err := r.reader.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{LabelScheduler: r.scheduler}); err != nil {
		return fmt.Errorf("list the ControllerRevisions of namespace %s, in which policies are kept that served: %w", r.namespace, err)
	}
	r.newest, r.heads, r.compiled, r.loaded = nil, map[string]*candidate{}, map[string]*candidate{}, true
	for i := range list.Items {
		r.newest = append(r.newest, &list.Items[i])
	}
	slices.SortFunc(r.newest, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Name, a.Name))
	})
	return nil
}

// last returns the newest policy that served all queues, not compiled; nil: none.
func (r *revisions) last() *candidate {
	return r.newestOf(func(c *candidate) bool { return !c.ofQueues })
}

// newestOf returns the newest policy that matches, not compiled; nil: none.
func (r *revisions) newestOf(some func(*candidate) bool) *candidate {
	for _, rev := range r.newest {
		if c := r.head(rev); some(c) {
			return c
		}
	}
	return nil
}

// head returns the policy in a revision, not compiled.
func (r *revisions) head(rev *appsv1.ControllerRevision) *candidate {
	c := r.heads[rev.Name]
	if c == nil {
		c = fromRevision(rev)
		r.heads[rev.Name] = c
	}
	return c
}

// candidate compiles the policy of a revision. The embedded default is always that of the running version.
func (r *revisions) candidate(rev *appsv1.ControllerRevision, shipped *candidate) *candidate {
	c := r.compiled[rev.Name]
	if c == nil {
		c = fromRevision(rev)
		if c.uid == "" {
			c = shipped
		} else if c.policy, c.issues = policy.LoadStored(c.data); c.policy != nil {
			c.policy.Name, c.policy.Generation = c.name, c.generation
		}
		r.compiled[rev.Name] = c
	}
	if c != shipped {
		c.faulty, c.takenBack = rev.Annotations[annotationFaulty], rev.Annotations[annotationBack]
	}
	return c
}

// add stores a serving policy, unless it is already the newest.
func (r *revisions) add(ctx context.Context, c *candidate) error {
	if r.newestOf(func(old *candidate) bool {
		return old.ofQueues == c.ofQueues && (!c.ofQueues || old.name == c.name)
	}).same(c) {
		return nil
	}
	next := int64(1)
	if len(r.newest) > 0 {
		next = r.newest[0].Revision + 1
	}
	rev := r.revision(c, next)
	err := r.client.Create(ctx, rev)
	if apierrors.IsNotFound(err) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
		if err := r.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make namespace %s, to keep policy %s in: %w", r.namespace, c, err)
		}
		err = r.client.Create(ctx, rev)
	}
	if err != nil {
		if apierrors.IsAlreadyExists(err) {
			r.loaded = false // another client writes under this name: load again
		}
		return fmt.Errorf("keep policy %s as ControllerRevision %s/%s: %w", c, rev.Namespace, rev.Name, err)
	}
	r.newest = slices.Insert(r.newest, 0, rev)
	return nil
}

// trim deletes the oldest of too many revisions. It keeps those of candidates in use: the serving policies, and the newest generations of
// existing policies, because their revisions contain their outcome.
func (r *revisions) trim(ctx context.Context, inUse []*candidate) error {
	type line struct {
		name  string // "": all policies that no longer exist
		unfit bool
	}
	kept := map[line]int{}
	var errs []error
	r.newest = slices.DeleteFunc(r.newest, func(rev *appsv1.ControllerRevision) bool {
		c := r.head(rev)
		of := line{unfit: unfit(rev)}
		if slices.ContainsFunc(inUse, func(used *candidate) bool { return used.name == c.name }) {
			of.name = c.name
		}
		if kept[of]++; kept[of] <= mostRevisions || slices.ContainsFunc(inUse, c.same) {
			return false
		}
		if err := r.client.Delete(ctx, rev); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete ControllerRevision %s/%s: %w", rev.Namespace, rev.Name, err))
			return false
		}
		delete(r.heads, rev.Name)
		delete(r.compiled, rev.Name)
		return true
	})
	return errors.Join(errs...)
}

func (r *revisions) revision(c *candidate, number int64) *appsv1.ControllerRevision {
	labels := map[string]string{
		LabelScheduler: r.scheduler, LabelPolicy: labelValue(c.name),
		LabelGeneration: strconv.FormatInt(c.generation, 10),
	}
	if c.uid != "" {
		labels[LabelUID] = string(c.uid)
	}
	if c.ofQueues {
		labels[LabelQueues] = "true"
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: fmt.Sprintf("%s-policy-%d", r.scheduler, number), Labels: labels},
		Data:       runtime.RawExtension{Raw: c.data},
		Revision:   number,
	}
}

// labelValue cuts a name to the maximum length of a label value.
func labelValue(name string) string {
	const most = 63
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most], "-.")
}

// fromRevision reads the policy in a revision without compiling it.
func fromRevision(rev *appsv1.ControllerRevision) *candidate {
	c := &candidate{uid: types.UID(rev.Labels[LabelUID]), data: rev.Data.Raw, ofQueues: rev.Labels[LabelQueues] == "true"}
	c.generation, _ = strconv.ParseInt(rev.Labels[LabelGeneration], 10, 64)
	var head metav1.PartialObjectMetadata
	if json.Unmarshal(c.data, &head) == nil {
		c.name = head.Name
	}
	return c
}

// fromObject compiles a stored object.
func fromObject(u *unstructured.Unstructured) *candidate {
	c := &candidate{name: u.GetName(), uid: u.GetUID(), generation: u.GetGeneration(), mode: modeOf(u)}
	_, c.ofQueues, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "queues")
	c.queues, _, _ = unstructured.NestedString(u.Object, "spec", "queues")
	c.fallback, _, _ = unstructured.NestedString(u.Object, "spec", "fallback")
	var err error
	if c.data, err = dataOf(u.GetName(), u.Object["spec"]); err != nil {
		c.issues = append(c.issues, notJSON(err))
		return c
	}
	if c.policy, c.issues = policy.LoadStored(c.data); c.policy != nil {
		c.policy.Generation = c.generation
	}
	return c
}

// dataOf returns the stored form of a policy, which is sufficient to apply it again.
func dataOf(name string, spec any) ([]byte, error) {
	object := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SchedulingPolicy",
		"metadata": map[string]any{"name": name},
	}
	if spec != nil {
		object["spec"] = spec
	}
	return json.Marshal(object)
}

// modeOf returns the mode in the spec, or "" if it is not a valid mode.
func modeOf(u *unstructured.Unstructured) v1alpha1.Mode {
	written, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
	switch mode := v1alpha1.Mode(written); mode {
	case v1alpha1.ModeActive, v1alpha1.ModePaused, v1alpha1.ModeShadow:
		return mode
	}
	return ""
}
