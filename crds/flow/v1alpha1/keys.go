package v1alpha1

// Keys of labels and annotations that a Job of a JobFlow has.
const (
	// CreatedByJobTemplate is "<namespace>.<template>".
	CreatedByJobTemplate = "volcano.sh/createdByJobTemplate"
	// CreatedByJobFlow is "<namespace>.<jobflow>".
	CreatedByJobFlow = "volcano.sh/createdByJobFlow"
)
