package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds of this package.
const GroupName = "flow.volcano.sh"

// GroupVersion is GroupName with the version of this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource gives the group's name for a plural such as "jobflows".
func Resource(plural string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: plural}
}

// AddToScheme makes the kinds of this package known to the scheme, so that clients and
// codecs can read and write them. It fails only where the scheme already holds another
// Go type under one of their names.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(addKnownTypes)
	return builder.AddToScheme(scheme)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&JobFlow{}, &JobFlowList{},
		&JobTemplate{}, &JobTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
