package model

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// avoids returns an edit that gives a pod of a job anti-affinity to the selected pods, in its own namespace or in all namespaces.
func avoids(job string, selector *metav1.LabelSelector, everywhere bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector}
		if everywhere {
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		p.Labels["app.kubernetes.io/name"], p.Labels["batch.kubernetes.io/job-name"] = "llama-pretraining", job
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
		}}
	}
}

// ownPods selects the pods of a job by its own label and by one that all jobs share.
func ownPods(job string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{
		"app.kubernetes.io/name": "llama-pretraining", "batch.kubernetes.io/job-name": job,
	}}
}

// otherJobs selects the pods of all other jobs, as exclusive placement of jobs on a rack does.
func otherJobs(job string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "batch.kubernetes.io/job-name", Operator: metav1.LabelSelectorOpExists},
		{Key: "batch.kubernetes.io/job-name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{job}},
	}}
}

// TestLimitOfANamespacesTerms fills a namespace with pods of different PodGroups, each with a term of its own. The limit counts the terms
// that a pod is compared with, so that terms about a job's own pods are not limited.
func TestLimitOfANamespacesTerms(t *testing.T) { //nolint:gocyclo // a table, and the checks of each row
	const limit, jobs = 20, 50
	for _, test := range []struct {
		name string
		edit func(job string) func(*corev1.Pod)
		want int // number of pods that are read
	}{
		{"own pods", func(job string) func(*corev1.Pod) { return avoids(job, ownPods(job), false) }, jobs},
		{"pods of other jobs", func(job string) func(*corev1.Pod) { return avoids(job, otherJobs(job), false) }, limit},
		{"own pods, in all namespaces", func(job string) func(*corev1.Pod) { return avoids(job, ownPods(job), true) }, limit},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCluster(Options{Limits: Limits{NamespaceTerms: limit}})
			var reported []string
			newPod := func(i int, edits ...func(*corev1.Pod)) *corev1.Pod {
				job := fmt.Sprint("llama-70b-seed-", i)
				return pod(job+"-0", "cpu=1", append([]func(*corev1.Pod){test.edit(job), annotated(GroupAnnotation, job)}, edits...)...)
			}
			for i := range jobs {
				for _, err := range c.Apply(upserts(newPod(i))...) {
					reported = append(reported, err.Error())
				}
			}
			if len(c.Tasks) != test.want || len(reported) != jobs-test.want {
				t.Errorf("%d pods are taken in and %d reported; should be %d and %d", len(c.Tasks), len(reported), test.want, jobs-test.want)
			}
			for _, text := range reported {
				if !strings.Contains(text, "with 21 different terms") || !strings.Contains(text, "the limit is 20") {
					t.Errorf("reported %q", text)
				}
			}
			plain := pod("notebook", "cpu=1", annotated(GroupAnnotation, "notebook"))
			elsewhere := newPod(jobs, func(p *corev1.Pod) { p.Namespace = "b" })
			if errs := c.Apply(upserts(plain, elsewhere)...); len(errs) > 0 && test.name != "pods of other jobs" {
				t.Errorf("a pod without terms, or one in another namespace: %v", errs)
			}
			if c.Tasks["b/"+elsewhere.Name] == nil {
				t.Error("a pod in another namespace is left out")
			}
			bound := newPod(jobs+1, on("n1"))
			c.Apply(upserts(node("n1", "cpu=8 memory=8Gi pods=10"), bound)...)
			x := c.Tasks["a/"+bound.Name]
			if x == nil || (x.PodTerms == nil) != (test.want < jobs) || c.Nodes.Used[CPU][c.Nodes.Index["n1"]] != 1000 {
				t.Error("a pod that runs does not count on its node without its terms")
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			before := len(c.Tasks)
			ended := newPod(1)
			ended.Status.Phase = corev1.PodSucceeded
			c.Apply(Delta{Op: Delete, Object: newPod(0)}, Delta{Object: ended})
			if got := len(c.Tasks); test.want < jobs && got <= before-1 {
				t.Errorf("there are %d pods after one was deleted and one ended; there were %d", got, before)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTermsOfNamespaces changes pods at random under a small limit. The counts stay correct, and no pod is left out without a reason.
func TestTermsOfNamespaces(t *testing.T) { //nolint:gocyclo // one branch per step
	rapid.Check(t, func(t *rapid.T) {
		const limit = 3
		c := NewCluster(Options{Limits: Limits{NamespaceTerms: limit}})
		var trial *Trial
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			job := fmt.Sprint("job-", rapid.IntRange(0, 7).Draw(t, "job"))
			terms := rapid.SampledFrom([]func(*corev1.Pod){
				func(*corev1.Pod) {}, avoids(job, ownPods(job), false), avoids(job, otherJobs(job), false), avoids(job, ownPods(job), true),
				avoids(job, &metav1.LabelSelector{}, false),
			}).Draw(t, "terms")
			p := pod(fmt.Sprint("p", rapid.IntRange(0, 11).Draw(t, "pod")), "cpu=1", terms, annotated(GroupAnnotation, job))
			p.Namespace = rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "namespace")
			p.UID = types.UID(fmt.Sprint(p.Namespace, p.Name, i))
			switch rapid.SampledFrom([]string{"add", "add", "add", "bind", "end", "delete", "trial"}).Draw(t, "step") {
			case "bind":
				on("n1")(p)
			case "end":
				p.Status.Phase = corev1.PodSucceeded
			case "delete":
				if known := c.Tasks[Key(p.Namespace, p.Name)]; known != nil {
					p = known.Object
				}
				c.Apply(Delta{Op: Delete, Object: p})
				continue
			case "trial":
				trial = Try(c)
				for _, j := range c.Jobs {
					trial.Remove(j)
					break
				}
				trial.End()
				continue
			}
			errs := c.Apply(upserts(p)...)
			if _, in := c.Tasks[Key(p.Namespace, p.Name)]; !in && len(errs) == 0 {
				t.Fatalf("pod %s is left out without a reason", p.Name)
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for namespace, b := range c.books.peers.of {
			for key, of := range b.left {
				if c.Tasks[key] != nil {
					t.Fatalf("pod %s is in the cluster and left out", key)
				}
				if _, above := b.above(c, namespace, of.object.Labels, of.terms, nil); !above && !c.books.peers.changed[namespace] {
					t.Fatalf("pod %s is left out although the limit has room for it", key)
				}
			}
		}
	})
}
