package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// makerCommand is the floor of Jobs: it creates their pods and binds them, and does nothing else.
const makerCommand = "bench-maker"

// maker defines the pods to create.
type maker struct {
	namespace string
	like      string // file with a pod as template
	pods      int
}

// NewMakerCommand creates the command that bench-jobs starts instead of the controllers and the scheduler.
func NewMakerCommand() *cobra.Command {
	var x maker
	c := &cobra.Command{
		Use:    makerCommand,
		Short:  "Make pods, and bind each to the next node; bench-jobs starts it",
		Hidden: true,
		Args:   noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return asFloor(c, func(ctx context.Context, kube kubernetes.Interface, nodes []string) error {
				like, err := readPod(x.like)
				if err != nil {
					return err
				}
				_, _ = fmt.Fprintln(c.ErrOrStderr(), begunLine)
				if err := x.make(ctx, kube, nodes, like); err != nil {
					return err
				}
				<-ctx.Done() // so that its CPU time can be read
				return nil
			})
		},
	}
	c.Flags().StringVar(&x.namespace, "namespace", "", "where the pods are made")
	c.Flags().StringVar(&x.like, "like", "", "file of the pod, as JSON, that all of them are like")
	c.Flags().IntVar(&x.pods, "pods", 0, "how many")
	return c
}

func (x maker) make(ctx context.Context, kube kubernetes.Interface, nodes []string, like *corev1.Pod) error {
	pods := kube.CoreV1().Pods(x.namespace)
	return eachOf(bareWorkers, x.pods, func(i int) error {
		pod := like.DeepCopy()
		pod.Name = fmt.Sprintf("pod-%d", i)
		pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("pods: %w", err)
		}
		return pods.Bind(ctx, bindingOf(x.namespace, pod.Name, pod.UID, nodes[i%len(nodes)]), asScheduler())
	})
}

// asMade returns a pod as it was before its creation, without its name and its owner.
func asMade(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
	out.Spec.NodeName = ""
	return out
}

func writePod(file string, pod *corev1.Pod) error {
	text, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("the pod of the floor: %w", err)
	}
	return os.WriteFile(file, text, 0o600)
}

func readPod(file string) (*corev1.Pod, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--like: %w", err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		return nil, fmt.Errorf("--like: %w", err)
	}
	return pod, nil
}
