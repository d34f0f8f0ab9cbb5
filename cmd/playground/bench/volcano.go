package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// volcanoConf is the default configuration of an installation of Volcano.
const volcanoConf = `actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// volcanoLists is how long Volcano's scheduler gets to list all objects, because its log does not report the end.
const volcanoLists = 5 * time.Second

// findVolcano looks for the programs that make volcano builds.
func findVolcano(folder string) error {
	for _, name := range []string{"scheduler", "controller-manager"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
			return UsageError{fmt.Errorf("--volcano: %w; build it with make volcano", err)}
		}
	}
	return nil
}

// startVolcano starts Volcano's scheduler and controllers instead of those of Celsius, with the same limits of their clients. It waits
// until they work.
func (x *jobsBench) startVolcano(ctx context.Context) (scheduler, controllers *program, err error) {
	if err := x.volcanoKinds(ctx); err != nil {
		return nil, nil, err
	}
	conf := filepath.Join(filepath.Dir(x.cluster.Kubeconfig), "volcano.conf")
	if err := os.WriteFile(conf, []byte(volcanoConf), 0o600); err != nil {
		return nil, nil, fmt.Errorf("configuration of Volcano: %w", err)
	}
	start := func(p *program, file string, more ...string) (*program, error) {
		return p, x.launch(ctx, p, filepath.Join(x.o.volcano, file), append(more,
			"--kubeconfig", x.cluster.Kubeconfig, "--scheduler-name", schedulerName, "--leader-elect=false", "--logtostderr",
			"--listen-address", "127.0.0.1:0", "--kube-api-qps", "2000", "--kube-api-burst", "4000")...)
	}
	scheduler, controllers, err = both(ctx, func() (*program, error) {
		return start(&program{name: "scheduler", ready: "Creating default queue and root queue"}, "scheduler", "--scheduler-conf", conf)
	}, func() (*program, error) {
		return start(&program{name: "controllers", ready: "worker 0 start"}, "controller-manager")
	})
	if err == nil {
		select {
		case <-time.After(volcanoLists):
		case <-ctx.Done(): // the next request returns the error
		}
	}
	return scheduler, controllers, err
}

// volcanoKinds creates the kinds that Volcano waits for and Celsius does not have.
func (x *jobsBench) volcanoKinds(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(x.o.volcano, "*.yaml"))
	if err != nil {
		return fmt.Errorf("kinds of Volcano: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("kinds of Volcano: %w", err)
		}
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := x.groups.Create(ctx, &u); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
