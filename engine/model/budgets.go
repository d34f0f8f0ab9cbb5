package model

import (
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budget contains the fields of a PodDisruptionBudget.
type Budget struct {
	Name      string
	Namespace string
	// Allowed is how many more of its pods may be evicted, from its status. It is 0 until the status is of the current generation.
	Allowed int64

	selector labels.Selector
	leaving  map[string]metav1.Time // pods that its status already counts as gone
}

// Budgets are the PodDisruptionBudgets.
type Budgets struct {
	Of      map[string][]*Budget // by namespace, in name order
	Version uint64               // the version changes with every budget
}

// Holds reports whether a budget applies to a task, and the budget's status does not count the task as gone yet.
func (b *Budget) Holds(t *Task) bool {
	_, leaves := b.leaving[t.Name]
	return !leaves && b.Namespace == t.Namespace && b.selector.Matches(labels.Set(t.Labels))
}

// readBudget reads a PodDisruptionBudget object. A selector that cannot be read selects every pod, so that no protected pod is evicted.
func readBudget(o *policyv1.PodDisruptionBudget, m *mistakes) *Budget {
	b := &Budget{Name: o.Name, Namespace: o.Namespace, leaving: o.Status.DisruptedPods}
	if o.Status.ObservedGeneration >= o.Generation {
		b.Allowed = max(int64(o.Status.DisruptionsAllowed), 0)
	}
	var err error
	if b.selector, err = metav1.LabelSelectorAsSelector(o.Spec.Selector); err != nil {
		m.add("spec.selector", "%v; until it is right, the budget keeps every pod of its namespace", err)
		b.selector, b.Allowed = labels.Everything(), 0
	}
	return b
}

func budgetName(b *Budget, name string) int { return strings.Compare(b.Name, name) }

func (x *Budgets) upsert(o *policyv1.PodDisruptionBudget, m *mistakes) {
	b, list := readBudget(o, m), x.Of[o.Namespace]
	if i, known := slices.BinarySearchFunc(list, o.Name, budgetName); known {
		list[i] = b
	} else {
		x.Of[o.Namespace] = slices.Insert(list, i, b)
	}
	x.Version++
}

func (x *Budgets) remove(namespace, name string) {
	list := x.Of[namespace]
	i, known := slices.BinarySearchFunc(list, name, budgetName)
	if !known {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(x.Of, namespace)
	} else {
		x.Of[namespace] = list
	}
	x.Version++
}

// check checks that the list of each namespace is in name order, has no duplicates, and is not empty.
func (x *Budgets) check() error {
	for _, namespace := range sortedKeys(x.Of) {
		list := x.Of[namespace]
		if len(list) == 0 {
			return fmt.Errorf("namespace %s: an empty list of budgets is kept", namespace)
		}
		for i, b := range list {
			if b.Namespace != namespace || i > 0 && list[i-1].Name >= b.Name {
				return fmt.Errorf("namespace %s: budget %s/%s is out of place", namespace, b.Namespace, b.Name)
			}
		}
	}
	return nil
}
