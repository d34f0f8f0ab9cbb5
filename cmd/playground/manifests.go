package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/crds"
	"github.com/celsius-scheduler/celsius/deploy"
)

// fieldManager is the field manager with which the playground applies objects.
const fieldManager = "celsius-playground"

// systemNamespace is the namespace in which the product stores Leases and other data.
const systemNamespace = "celsius-system"

// applyManifests creates our CRDs, the policies that guard them and the product's namespace in the cluster. It waits until the CRDs are
// served.
func applyManifests(ctx context.Context, cfg *rest.Config) error {
	client, err := apiextensions.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	files, err := fs.Glob(crds.Manifests, "manifests/*.yaml")
	if err != nil {
		return fmt.Errorf("CRDs: %w", err)
	}
	served := map[string]string{} // group and version by the CRD's name
	for _, file := range files {
		name, gv, err := applyCRD(ctx, client, file)
		if err != nil {
			return fmt.Errorf("CRD %s: %w", file, err)
		}
		served[name] = gv
	}
	for name, gv := range served {
		if err := awaitServed(ctx, client, name, gv); err != nil {
			return err
		}
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	_, err = core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", systemNamespace, err)
	}
	return applyGuard(ctx, cfg)
}

// applyGuard applies the admission policies that the API server evaluates itself.
func applyGuard(ctx context.Context, cfg *rest.Config) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	files, err := fs.Glob(deploy.Guard, "guard/*.yaml")
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	for _, file := range files {
		text, err := deploy.Guard.ReadFile(file)
		if err != nil {
			return fmt.Errorf("guard: %w", err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("guard: %s: %w", file, err)
			}
			if object.GetKind() == "Kustomization" {
				continue
			}
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager),
				client.ForceOwnership); err != nil {
				return fmt.Errorf("guard: %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

func applyCRD(ctx context.Context, client apiextensions.Interface, file string) (name, groupVersion string, err error) {
	text, err := crds.Manifests.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return "", "", err
	}
	body, err := json.Marshal(crd)
	if err != nil {
		return "", "", err
	}
	force := true
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, crd.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	return crd.Name, crd.Spec.Group + "/" + crd.Spec.Versions[0].Name, err
}

// awaitServed waits until the kind can be used and discovered.
func awaitServed(ctx context.Context, client apiextensions.Interface, name, groupVersion string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.Discovery().ServerResourcesForGroupVersion(groupVersion)
		if err == nil {
			err = established(ctx, client, name)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("CRD %s is not served: %w", name, err)
		case <-tick.C:
		}
	}
}

func established(ctx context.Context, client apiextensions.Interface, name string) error {
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return errors.New("not established yet")
}
