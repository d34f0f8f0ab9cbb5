package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// stages are the lives of nodes and pods, one step a file.
//
//go:embed stages/*.yaml
var stages embed.FS

// readStages gives the stages by the kind that they are for.
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

// startKWOK starts the kubelet of all nodes, which runs no container.
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
		TypedClient:               typed,
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
