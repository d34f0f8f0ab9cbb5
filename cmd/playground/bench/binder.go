package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// binderCommand is the floor in a separate process: it watches and binds, and makes no decisions.
const binderCommand = "bench-binder"

// begunLine is the log line of the floors when they begin to work.
const begunLine = "working"

// NewBinderCommand creates the command that bench-live starts instead of the scheduler.
func NewBinderCommand() *cobra.Command {
	return &cobra.Command{
		Use:    binderCommand,
		Short:  "List and watch pods, and bind each to the next node; bench-live starts it",
		Hidden: true,
		Args:   noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return asFloor(c, func(ctx context.Context, kube kubernetes.Interface, nodes []string) error {
				return (&binder{kube: kube, nodes: nodes, seen: map[types.UID]bool{}}).run(ctx, c.ErrOrStderr())
			})
		},
	}
}

// asFloor runs a floor until a user ends it. The floor gets a client like the scheduler's, and the names of all nodes.
func asFloor(c *cobra.Command, do func(context.Context, kubernetes.Interface, []string) error) error {
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return fmt.Errorf("KUBECONFIG: %w", err)
	}
	cfg.QPS, cfg.Burst = 2000, 4000
	cfg.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	var nodes []string
	for i := range list.Items {
		nodes = append(nodes, list.Items[i].Name)
	}
	if err := do(ctx, kube, nodes); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// binder lists and watches all pods, as a scheduler must do, and binds those without a node.
type binder struct {
	kube  kubernetes.Interface
	nodes []string
	seen  map[types.UID]bool // pods that it has bound or will bind
}

func (x *binder) run(ctx context.Context, log io.Writer) error {
	list, err := x.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	_, _ = fmt.Fprintln(log, begunLine)
	todo := make(chan *corev1.Pod, 100_000)
	failed := make(chan error, bareWorkers)
	for w := range bareWorkers {
		go func() { failed <- x.bindAll(ctx, todo, w) }()
	}
	for i := range list.Items {
		x.see(&list.Items[i], todo)
	}
	watching, err := x.kube.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case event, ok := <-watching.ResultChan():
			if !ok {
				return errors.New("the API server ended the watch of pods")
			}
			if pod, ok := event.Object.(*corev1.Pod); ok {
				x.see(pod, todo)
			}
		}
	}
}

// see queues a new pod without a node for binding.
func (x *binder) see(pod *corev1.Pod, todo chan<- *corev1.Pod) {
	if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !x.seen[pod.UID] {
		x.seen[pod.UID] = true
		todo <- pod
	}
}

// bindAll binds pods from a channel. Each worker begins at another node, and then uses the next node of its series.
func (x *binder) bindAll(ctx context.Context, todo <-chan *corev1.Pod, worker int) error {
	for next := worker; ; next += bareWorkers {
		select {
		case <-ctx.Done():
			return nil
		case pod := <-todo:
			binding := bindingOf(pod.Namespace, pod.Name, pod.UID, x.nodes[next%len(x.nodes)])
			if err := x.kube.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, asScheduler()); err != nil {
				return fmt.Errorf("bind: %w", err)
			}
		}
	}
}
