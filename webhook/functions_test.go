package webhook

import (
	"reflect"
	"testing"

	"k8s.io/kubernetes/pkg/apis/core"
)

// TestValidationOptions names every option of the Kubernetes validation of pods, so that an author must decide about each new option. The
// webhook must not refuse a feature that an API server can have enabled.
func TestValidationOptions(t *testing.T) {
	const (
		feature = "of a feature that widens what is let pass"
		older   = "for what older versions have stored: nothing is stored yet"
		other   = "for pods themselves or their statuses, or on by default and with rules of its own"
	)
	known := map[string]string{
		"AllowContainerRestartPolicyRules": feature, "AllowEnvFilesValidation": feature, "AllowPodLifecycleSleepActionZeroValue": feature,
		"AllowRelaxedDNSSearchValidation": feature, "AllowRelaxedEnvironmentVariableValidation": feature, "AllowRestartAllContainers": feature,
		"AllowSidecarResizePolicy": feature, "AllowTaintTolerationComparisonOperators": feature, "AllowUserNamespacesHostNetworkSupport": feature,
		"AllowInvalidPodDeletionCost": older, "AllowInvalidLabelValueInSelector": older, "AllowIndivisibleHugePagesValues": older,
		"AllowInvalidTopologySpreadConstraintLabelSelector": older, "AllowNonLocalProjectedTokenPath": older,
		"AllowNamespacedSysctlsForHostNetAndHostIPC": older, "AllowInvalidLabelValueInRequiredNodeAffinity": older,
		"OldPodViolatesMatchLabelKeysValidation": older, "OldPodViolatesLegacyMatchLabelKeysValidation": older,
		"AllowExistingRestartContainerForNonSidecarInitContainer": older, "AllowUserNamespacesWithVolumeDevices": older,
		"AllowOnlyRecursiveSELinuxChangePolicy": "narrows what is let pass, where a feature is off",
		"ResourceIsPod":                         other, "PodLevelResourcesEnabled": other,
		"InPlacePodLevelResourcesVerticalScalingEnabled": other,
		"AllowMatchLabelKeysInPodTopologySpread":         other, "AllowMatchLabelKeysInPodTopologySpreadSelectorMerge": other,
		"AllowImageVolumeWithDigest": other,
	}
	got := reflect.ValueOf(validationOptions(&core.PodTemplateSpec{}))
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		switch kind := known[name]; {
		case kind == "":
			t.Errorf("Kubernetes has a new option of validation, %s: decide whether an API server may let pass more with it", name)
		case kind != other && got.Field(i).Bool() != (kind == feature):
			t.Errorf("%s is %v, and is %s", name, got.Field(i), kind)
		}
	}
}
