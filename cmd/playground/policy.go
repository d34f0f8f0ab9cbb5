package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// policyChoice is the meaning of --policy.
type policyChoice struct {
	name   string // name of the policy to serve; "": the scheduler's default
	object []byte // policy to apply first, as JSON; nil: the policy exists or is created later
}

// readPolicy reads --policy: a file if the argument is or looks like a file, otherwise a name.
func readPolicy(arg string) (policyChoice, error) {
	if arg == "" {
		return policyChoice{}, nil
	}
	text, err := os.ReadFile(arg)
	if err != nil {
		if strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
			return policyChoice{}, fmt.Errorf("--policy %s: %w", arg, plainError(err))
		}
		if problems := validation.IsDNS1123Subdomain(arg); len(problems) > 0 {
			return policyChoice{}, fmt.Errorf("--policy %s is neither a file nor a name of a SchedulingPolicy: %s", arg,
				strings.Join(problems, "; "))
		}
		return policyChoice{name: arg}, nil
	}
	object, err := source.FirstToJSON(text)
	if err != nil {
		return policyChoice{}, fmt.Errorf("--policy %s: %s", arg, yamlMessage(err))
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &head); err != nil || head.Kind != "SchedulingPolicy" || head.Name == "" {
		return policyChoice{},
			fmt.Errorf("--policy %s: the file holds no SchedulingPolicy with a name; it opens with apiVersion: %s, kind: SchedulingPolicy", arg,
				policyv1alpha1.GroupVersion)
	}
	return policyChoice{name: head.Name, object: object}, nil
}

// apply creates the policy of the file in the cluster.
func (p policyChoice) apply(ctx context.Context, cfg *rest.Config) error {
	if p.object == nil {
		return nil
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	force := true
	policies := client.Resource(policyv1alpha1.GroupVersion.WithResource("schedulingpolicies"))
	if _, err := policies.Patch(ctx, p.name, types.ApplyPatchType, p.object, metav1.PatchOptions{
		FieldManager: fieldManager,
		Force:        &force,
	}); err != nil {
		return fmt.Errorf("SchedulingPolicy %s: %w", p.name, err)
	}
	return nil
}

// yamlMessage removes the names of the functions that the error passed through.
func yamlMessage(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, "yaml: "); at >= 0 {
		return text[at+len("yaml: "):]
	}
	return strings.TrimPrefix(text, "document 1: ")
}
