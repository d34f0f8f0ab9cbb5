package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/kubernetes"

	"github.com/celsius-scheduler/celsius/cmd/playground/bench"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// runBench is a bench.Run. It starts a control plane with its own data, and the controllers.
func runBench(ctx context.Context, out, errs io.Writer, setup bench.Setup,
	measure func(context.Context, *bench.Cluster) error,
) (err error) {
	listener, err := listen(0)
	if err != nil {
		return err
	}
	data, err := openData("", out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.close(err == nil)) }()
	logTo(data.log)
	if err := stderrTo(data.log, errs); err != nil {
		return err
	}
	plane, err := startControlPlane(ctx, controlPlaneOptions{dir: data.dir, listener: listener, log: data.log})
	if err != nil {
		return data.pointToLog(err)
	}
	defer func() { err = errors.Join(err, plane.parts.stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-plane.parts.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	cluster := &bench.Cluster{
		Kubeconfig: plane.kubeconfig, Config: plane.clientConfig, Log: data.log, Fail: plane.parts.fail,
		Index:       plane.index,
		EndKubelets: func() { plane.parts.end("KWOK") },
	}
	if cluster.Nodes, err = plane.furnishBench(ctx, setup); err != nil {
		return data.pointToLog(err)
	}
	if err := measure(ctx, cluster); err != nil {
		return data.pointToLog(errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// furnishBench creates the nodes, and starts the controllers unless the setup is bare.
func (c *controlPlane) furnishBench(ctx context.Context, setup bench.Setup) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.clientConfig("bench"))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	s, err := parseShape(fmt.Sprintf("%dx cpu=32,memory=256Gi", setup.Nodes))
	if err != nil {
		return nil, err
	}
	nodes, err := createNodes(ctx, client, "node-", []shape{s})
	if err != nil {
		return nil, err
	}
	if err := awaitNodes(ctx, client); err != nil {
		return nil, err
	}
	if !setup.Kubelets {
		c.parts.end("KWOK")
	}
	if setup.Bare {
		return nodes, nil
	}
	c.parts.start(ctx, "controllers", func(ctx context.Context) error {
		return controller.Run(ctx, c.clientConfig("controllers"), controller.Options{})
	})
	return nodes, nil
}
