package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// Resources for what-if questions about a namespace and about the cluster.
const (
	WhatIfs        = "whatifs"
	ClusterWhatIfs = "clusterwhatifs"
)

// mostQuestion is the maximum size of a question in bytes, as for objects in the API server.
const mostQuestion = 3 << 20

// keptFor is how long computed data is kept after the last question.
const keptFor = 5 * time.Minute

// WhatIf is a question: the decisions of the next cycle if all of these changes were made.
type WhatIf struct {
	metav1.TypeMeta `json:",inline"`
	// Add contains objects: Jobs, PodGroups and Pods, and for the cluster also Queues and Nodes.
	Add []json.RawMessage `json:"add,omitempty"`
	// Delete contains names of jobs; for the cluster as namespace/name.
	Delete []string `json:"delete,omitempty"`
	// Copies adds copies of nodes, and Policy replaces the serving SchedulingPolicy. Both are only for the cluster.
	Copies []whatif.Copies `json:"copies,omitempty"`
	Policy json.RawMessage `json:"policy,omitempty"`
}

// WhatIfAnswer is the answer to a WhatIf.
type WhatIfAnswer struct {
	metav1.TypeMeta `json:",inline"`
	Answer          *whatif.Answer `json:"answer"`
}

// WhatIfPath returns the path for questions; namespace "": for the cluster.
func WhatIfPath(namespace string) string {
	at := "/apis/" + Group + "/" + Version + "/"
	if namespace == "" {
		return at + ClusterWhatIfs
	}
	return at + "namespaces/" + namespace + "/" + WhatIfs
}

// kept is the data that is kept between questions.
type kept struct {
	asker whatif.Asker
	timer *time.Timer
	once  sync.Once
}

// askWhatIf answers a request with a what-if question.
func (s *Server) askWhatIf(w http.ResponseWriter, r *http.Request, g *gate, x *turns, namespace string) {
	u := g.who(r)
	if u == nil {
		refuse(w, apierrors.NewUnauthorized("it is not known who asks"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	answer, err := s.whatIf(ctx, g, u, x, namespace, r.Body)
	switch {
	case err != nil:
		refuse(w, statusOf(err))
	case wantsText(r):
		writeText(w, answer.Text)
	default:
		write(w, http.StatusOK, &WhatIfAnswer{metav1.TypeMeta{Kind: "WhatIf", APIVersion: Group + "/" + Version}, answer})
	}
}

func (s *Server) whatIf(ctx context.Context, g *gate, u user.Info, x *turns, namespace string, body io.Reader) (*whatif.Answer, error) {
	resource := schema.GroupResource{Group: Group, Resource: ClusterWhatIfs}
	if namespace != "" {
		resource.Resource = WhatIfs
	}
	switch ok, err := g.may(ctx, u, "create", resource.Resource, namespace, ""); {
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("ask what user %s may: %w", u.GetName(), err))
	case !ok:
		return nil, apierrors.NewForbidden(resource, "", fmt.Errorf("user %s must be allowed to create %s", u.GetName(), resource))
	}
	text, err := io.ReadAll(io.LimitReader(body, mostQuestion+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("read the question: " + err.Error())
	}
	if len(text) > mostQuestion {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a question has at most %d bytes", mostQuestion))
	}
	change, err := changeOf(text, namespace)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var answer *whatif.Answer
	var wrong error
	err = s.asSeen(ctx, g, u, x, namespace, func(c *explain.Cycle) {
		answer, wrong = x.kept.asker.Ask(whatif.Asked{Session: c.Session, Now: time.Now(), Sees: c.Sees}, change)
	})
	x.forgetLater()
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		if _, unknown := errors.AsType[*explain.UnknownError](wrong); unknown {
			return nil, notFound(wrong, resource)
		}
		return nil, apierrors.NewBadRequest(wrong.Error())
	}
	return answer, nil
}

// forgetLater drops the kept data if no question comes for keptFor.
func (x *turns) forgetLater() {
	x.kept.once.Do(func() {
		x.kept.timer = time.AfterFunc(keptFor, func() {
			x.turn <- struct{}{}
			x.kept.asker = whatif.Asker{}
			<-x.turn
		})
	})
	x.kept.timer.Reset(keptFor)
}

// changeOf parses a question about a namespace or the cluster. Each error states what is wrong, and what would be right.
func changeOf(text []byte, namespace string) (*whatif.Change, error) {
	var q WhatIf
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("read the question: %w", err)
	}
	if namespace != "" && (len(q.Copies) > 0 || len(q.Policy) > 0) {
		return nil, fmt.Errorf("nodes and policies are the cluster's: ask %s about them", ClusterWhatIfs)
	}
	change := &whatif.Change{Copies: q.Copies}
	for i, raw := range q.Add {
		o, err := objectOf(raw, namespace)
		if err != nil {
			return nil, fmt.Errorf("add[%d]: %w", i, err)
		}
		change.Add = append(change.Add, o)
	}
	for _, name := range q.Delete {
		if namespace != "" {
			name = model.Key(namespace, name)
		}
		change.Delete = append(change.Delete, name)
	}
	if len(q.Policy) > 0 {
		p, issues := policy.LoadStored(q.Policy)
		if err := issues.Err(); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		change.Policy = p
	}
	return change, nil
}

// objectOf parses an object to add.
func objectOf(raw json.RawMessage, namespace string) (metav1.Object, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(raw, &is); err != nil {
		return nil, err //nolint:wrapcheck // it says what is no JSON
	}
	kinds := map[metav1.TypeMeta]metav1.Object{
		{APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job"}: &batchv1alpha1.Job{},
		{APIVersion: v1beta1.GroupVersion.String(), Kind: "PodGroup"}:  &v1beta1.PodGroup{},
		{APIVersion: "v1", Kind: "Pod"}:                                &corev1.Pod{},
	}
	if namespace == "" {
		kinds[metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Queue"}] = &v1beta1.Queue{}
		kinds[metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}] = &corev1.Node{}
	}
	o := kinds[is]
	if o == nil {
		return nil, fmt.Errorf("a question in a namespace is about Jobs of %s, PodGroups of %s and Pods, one of the cluster about Queues and "+
			"Nodes as well, not about %s %s", batchv1alpha1.GroupVersion, v1beta1.GroupVersion, is.APIVersion, is.Kind)
	}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, fmt.Errorf("%s: %w", is.Kind, err)
	}
	if namespace != "" && o.GetNamespace() != namespace {
		return nil, fmt.Errorf("%s %s is of namespace %q, and the question of %s", is.Kind, o.GetName(), o.GetNamespace(), namespace)
	}
	return o, nil
}
