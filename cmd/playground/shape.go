package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// shape describes nodes: [COUNTx ]ITEM,ITEM…, where an item is RESOURCE=QUANTITY, label:KEY=VALUE or taint:KEY=VALUE:EFFECT.
type shape struct {
	count       int // 0: the number of --nodes
	allocatable corev1.ResourceList
	labels      map[string]string
	taints      []corev1.Taint
}

// defaultShape is the default shape of nodes. Every sample fits on such nodes.
const defaultShape = "cpu=32,memory=256Gi,nvidia.com/gpu=8"

// fillUp contains the amounts of a node for resources that its shape does not name.
const fillUp = "cpu=32,memory=256Gi,pods=110"

// shapeForm is part of the message for every mistake in a shape.
const shapeForm = "write it as cpu=32,memory=256Gi or 8x cpu=32,memory=256Gi,nvidia.com/gpu=8,label:zone=a,taint:gpu=yes:NoSchedule"

var countForm = regexp.MustCompile(`^\s*(\d+)\s*x\s+(.*)$`)

// parseShape parses one --node-shape.
func parseShape(text string) (shape, error) {
	s := shape{allocatable: corev1.ResourceList{}, labels: map[string]string{}}
	items := text
	if m := countForm.FindStringSubmatch(text); m != nil {
		count, err := strconv.Atoi(m[1])
		if err != nil || count == 0 {
			return shape{}, fmt.Errorf("node shape %q: %s nodes are no number of nodes from 1 on; %s", text, m[1], shapeForm)
		}
		s.count, items = count, m[2]
	}
	for item := range strings.SplitSeq(items, ",") {
		if err := s.add(strings.TrimSpace(item)); err != nil {
			return shape{}, fmt.Errorf("node shape %q: %w; %s", text, err, shapeForm)
		}
	}
	for item := range strings.SplitSeq(fillUp, ",") {
		name, quantity, _ := strings.Cut(item, "=")
		if _, ok := s.allocatable[corev1.ResourceName(name)]; !ok {
			s.allocatable[corev1.ResourceName(name)] = resource.MustParse(quantity)
		}
	}
	return s, nil
}

func (s *shape) add(item string) error {
	if label, ok := strings.CutPrefix(item, "label:"); ok {
		key, value, _ := strings.Cut(label, "=")
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("%q is no label: %s", item, strings.Join(problems, "; "))
		}
		s.labels[key] = value
		return nil
	}
	if taint, ok := strings.CutPrefix(item, "taint:"); ok {
		return s.addTaint(taint)
	}
	name, text, ok := strings.Cut(item, "=")
	if !ok {
		return fmt.Errorf("%q is no item", item)
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a resource: %s", name, strings.Join(problems, "; "))
	}
	if _, twice := s.allocatable[corev1.ResourceName(name)]; twice {
		return fmt.Errorf("%s is there twice", name)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return fmt.Errorf("%q is no amount of %s: give a quantity such as 500m, 32 or 256Gi", text, name)
	}
	s.allocatable[corev1.ResourceName(name)] = quantity
	return nil
}

func (s *shape) addTaint(text string) error {
	rest, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		ok = false
	}
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); !ok || len(problems) > 0 {
		return fmt.Errorf("%q is no taint: give KEY=VALUE and one of :NoSchedule, :PreferNoSchedule, :NoExecute %s", text,
			strings.Join(problems, "; "))
	}
	s.taints = append(s.taints, taint)
	return nil
}

// parseShapes parses all values of --node-shape. Shapes without a count get the number of --nodes. nodesGiven states that --nodes is on the
// command line.
func parseShapes(texts []string, nodes int, nodesGiven bool) ([]shape, error) {
	if nodes < 0 {
		return nil, fmt.Errorf("--nodes %d: give 0 or more", nodes)
	}
	if len(texts) == 0 {
		texts = []string{defaultShape}
	}
	used := false
	var out []shape
	for _, text := range texts {
		s, err := parseShape(text)
		if err != nil {
			return nil, err
		}
		if s.count == 0 {
			s.count, used = nodes, true
		}
		out = append(out, s)
	}
	if nodesGiven && !used {
		return nil, fmt.Errorf("--nodes %d says nothing: every --node-shape has a count of its own; leave one of them out", nodes)
	}
	return out, nil
}

// node returns one node of the shape.
func (s shape) node(name string) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, s.labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: s.taints},
		Status:     corev1.NodeStatus{Allocatable: s.allocatable, Capacity: s.allocatable},
	}
}

// createNodes creates the nodes of all shapes, named with a prefix and a number. Existing nodes stay unchanged. It returns the names of all
// nodes.
func createNodes(ctx context.Context, client kubernetes.Interface, prefix string, shapes []shape) ([]string, error) {
	var nodes []*corev1.Node
	for _, s := range shapes {
		for range s.count {
			nodes = append(nodes, s.node(fmt.Sprintf("%s%d", prefix, len(nodes))))
		}
	}
	const workers = 8
	next, errs := make(chan *corev1.Node), make(chan error, workers)
	for range workers {
		go func() {
			var failed error
			for node := range next {
				_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{FieldManager: fieldManager})
				if err != nil && !apierrors.IsAlreadyExists(err) {
					failed = fmt.Errorf("node %s: %w", node.Name, err)
				}
			}
			errs <- failed
		}()
	}
	var names []string
	for _, node := range nodes {
		next <- node
		names = append(names, node.Name)
	}
	close(next)
	var err error
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return names, err
}

// awaitNodes waits until every node is Ready.
func awaitNodes(ctx context.Context, client kubernetes.Interface) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return !isReady(&n) }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nodes are not Ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
