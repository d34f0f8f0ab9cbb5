package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
	"github.com/celsius-scheduler/celsius/webhook"
)

// startProduct starts the parts of Celsius after the control plane, and creates the chosen policy in the cluster.
func startProduct(ctx context.Context, c *controlPlane, policy policyChoice) error {
	if err := c.startWebhook(ctx, nil); err != nil {
		return err
	}
	if err := policy.apply(ctx, c.config); err != nil {
		return err
	}
	c.parts.start(ctx, "controllers", func(ctx context.Context) error {
		return controller.Run(ctx, c.clientConfig("controllers"), controller.Options{})
	})
	c.parts.start(ctx, "scheduler", func(ctx context.Context) error {
		return live.Run(ctx, c.clientConfig("scheduler"), live.Options{
			Policy: policy.name, Explain: questions.Options{Address: "127.0.0.1:0", Host: "localhost"},
		})
	})
	return nil
}

// clientConfig returns the administrator's configuration for one part of the product, with its own user agent.
func (c *controlPlane) clientConfig(part string) *rest.Config {
	cfg := rest.CopyConfig(c.config)
	cfg.UserAgent = "celsius-" + part
	return cfg
}

// webhookConfiguration is the name under which the webhook registers itself. It differs from the name in the manifests of deploy, whose
// webhook is reached through a Service, so that both can be applied.
const webhookConfiguration = "celsius-playground"

// startWebhook starts admission for the jobs of these schedulers (nil: the default ones), and waits until the API server calls it.
func (c *controlPlane) startWebhook(ctx context.Context, schedulers []string) error {
	c.parts.start(ctx, "webhook", func(ctx context.Context) error {
		return webhook.Run(ctx, c.clientConfig("webhook"), webhook.Options{
			SchedulerNames:    schedulers,
			Address:           "127.0.0.1:0",
			URLHost:           "127.0.0.1",
			ConfigurationName: webhookConfiguration,
			UnregisterOnExit:  true,
		})
	})
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	return c.await(ctx, "admission", func(ctx context.Context, _ kubernetes.Interface) error {
		jobs := client.Resource(batchv1alpha1.GroupVersion.WithResource("jobs")).Namespace(metav1.NamespaceDefault)
		_, err := jobs.Create(ctx, refusedJob(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("the API server does not ask the webhook")
		case strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request"):
			return nil
		}
		return err
	})
}

// refusedJob returns a Job that the schema accepts and admission refuses: two of its tasks have the same name.
func refusedJob() *unstructured.Unstructured {
	task := map[string]any{
		"name":     "same",
		"replicas": int64(1),
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main"}}}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": batchv1alpha1.GroupVersion.String(),
		"kind":       "Job",
		"metadata":   map[string]any{"name": "is-admission-there"},
		"spec":       map[string]any{"tasks": []any{task, task}},
	}}
}

// forgetWebhook removes the registration of a killed playground's webhook. That webhook does not answer, and every Job would be refused.
func forgetWebhook(ctx context.Context, client kubernetes.Interface) error {
	admission := client.AdmissionregistrationV1()
	validating, err := admission.ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err == nil && isLocal(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) *string { return w.ClientConfig.URL }) {
		err = admission.ValidatingWebhookConfigurations().Delete(ctx, webhookConfiguration, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ValidatingWebhookConfiguration %s: %w", webhookConfiguration, err)
	}
	mutating, err := admission.MutatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err == nil && isLocal(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) *string { return w.ClientConfig.URL }) {
		err = admission.MutatingWebhookConfigurations().Delete(ctx, webhookConfiguration, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("MutatingWebhookConfiguration %s: %w", webhookConfiguration, err)
	}
	return nil
}

func isLocal[W any](webhooks []W, url func(W) *string) bool {
	for _, w := range webhooks {
		if u := url(w); u != nil && strings.HasPrefix(*u, "https://127.0.0.1:") {
			return true
		}
	}
	return false
}
