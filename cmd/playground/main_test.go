package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// runAsProgram is an environment variable that turns the test binary into the playground. A test starts it as a process, with kubectl or
// with flags. Thus nothing is linked twice.
const runAsProgram = "CELSIUS_PLAYGROUND_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(program())
	}
	code := m.Run()
	if err := theBed.stop(code == 0); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		code = 1
	}
	os.Exit(code)
}

// bed is the only control plane of a test binary. It starts when the first test needs it. Therefore tests without it, and go test -list,
// are not slowed down.
type bed struct {
	once   sync.Once
	err    error
	dir    string
	log    *os.File
	plane  *controlPlane
	client client.WithWatch
	kube   kubernetes.Interface

	mu     sync.Mutex
	worlds int // number of worlds so far; they are numbered from 1
}

var theBed bed

// get returns the running control plane.
func (b *bed) get(t testing.TB) *bed {
	t.Helper()
	b.once.Do(func() { b.err = b.start() })
	if b.err != nil {
		t.Fatalf("control plane: %v", b.err)
	}
	return b
}

func (b *bed) start() (err error) {
	if b.dir, err = os.MkdirTemp("", "celsius-e2e-"); err != nil {
		return err
	}
	if b.log, err = openLog(b.dir); err != nil {
		return err
	}
	logTo(b.log)
	listener, err := listen(0)
	if err != nil {
		return err
	}
	if b.plane, err = startControlPlane(context.Background(), controlPlaneOptions{dir: b.dir, listener: listener, log: b.log}); err != nil {
		return err
	}
	if b.kube, err = kubernetes.NewForConfig(b.plane.config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, batchv1alpha1.AddToScheme, busv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme, schedulingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if b.client, err = client.NewWithWatch(b.plane.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return b.startWebhook()
}

// stop ends the control plane. If a test failed, it keeps the log and prints its path.
func (b *bed) stop(clean bool) error {
	if b.dir == "" {
		return nil
	}
	var err error
	if b.plane != nil {
		select {
		case failed := <-b.plane.parts.failed:
			err = failed
		default:
		}
		err = errors.Join(err, b.plane.parts.stop())
	}
	logTo(io.Discard)
	if !clean || err != nil {
		kept := filepath.Join(os.TempDir(), fmt.Sprintf("celsius-e2e-%d.log", os.Getpid()))
		if err := os.Rename(b.log.Name(), kept); err == nil {
			fmt.Fprintln(os.Stderr, "the log of the control plane and of what ran in this process:", kept)
		}
	}
	return errors.Join(err, b.log.Close(), os.RemoveAll(b.dir))
}
