package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// stages contains the steps in the lives of nodes and pods, one file for each step.
//
//go:embed stages/*.yaml
var stages embed.FS

// readStages returns the stages by the kind that they apply to.
func readStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	files, err := fs.Glob(stages, "stages/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("stages: %w", err)
	}
	out := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, file := range files {
		text, err := stages.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("stages: %w", err)
		}
		stage, err := config.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[stage.Spec.ResourceRef] = append(out[stage.Spec.ResourceRef], stage)
	}
	return out, nil
}

// carefulClient deletes a pod only if its deletion was requested. KWOK identifies the pod only by name, and another pod may have the same
// name by then. For the same reason the patches of the stages contain the pod's UID, as a kubelet's do.
type carefulClient struct{ kubernetes.Interface }

type carefulCore struct{ corev1client.CoreV1Interface }

type carefulPods struct{ corev1client.PodInterface }

// CoreV1 implements kubernetes.Interface.
func (c carefulClient) CoreV1() corev1client.CoreV1Interface {
	return carefulCore{c.Interface.CoreV1()}
}

// Pods implements corev1client.PodsGetter.
func (c carefulCore) Pods(namespace string) corev1client.PodInterface {
	return carefulPods{c.CoreV1Interface.Pods(namespace)}
}

// Delete implements corev1client.PodInterface.
func (p carefulPods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	pod, err := p.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	o.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return p.PodInterface.Delete(ctx, name, o)
}

// startKWOK starts KWOK as the kubelet of all nodes. It runs no containers.
func (c *controlPlane) startKWOK(ctx context.Context, o controlPlaneOptions) error {
	lives, err := readStages()
	if err != nil {
		return err
	}
	cfg := rest.CopyConfig(c.config)
	cfg.UserAgent = "kwok"
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	untyped, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	kubelet, err := controllers.NewController(controllers.Config{
		TypedClient:               carefulClient{typed},
		DynamicClient:             untyped,
		RESTClient:                typed.RESTClient(),
		ManageAllNodes:            true,
		CIDR:                      "10.128.0.0/9",
		NodeIP:                    "10.0.0.1",
		NodePort:                  10250,
		LocalStages:               lives,
		NodePlayStageParallelism:  4,
		PodPlayStageParallelism:   16,
		PodsOnNodeSyncParallelism: 4,
		EnablePodCache:            true,
		ID:                        contextName,
		FuncMap:                   stageFunctions(),
	})
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	c.parts.start(ctx, "KWOK", func(ctx context.Context) error {
		ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(o.log, kwoklog.LevelWarn))
		err := kubelet.Start(ctx)
		started <- err
		if err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	return <-started
}
