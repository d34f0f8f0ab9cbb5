package main

// foreignType is a place where a type begins whose fields are described elsewhere.
type foreignType struct {
	// path is the kind and the field.
	path string
	// text has our descriptions of what is below it, by path; nil: none at all.
	text map[string]string
	// keepMetadata says that unknown fields of its metadata are kept.
	keepMetadata bool
}

// typeMeta describes the fields that every kind has; metadata may have no description.
var typeMeta = map[string]string{
	"apiVersion": "The group and version of the object's kind.",
	"kind":       "The kind of the object.",
}

// foreign lists where types of Kubernetes begin in our manifests.
var foreign = []foreignType{
	{path: "Job.spec.tasks.[].template", keepMetadata: true},
	{path: "Job.spec.volumes.[].volumeClaim"},
	{path: "CronJob.spec.jobTemplate.spec.tasks.[].template", keepMetadata: true},
	{path: "CronJob.spec.jobTemplate.spec.volumes.[].volumeClaim"},
	{path: "CronJob.spec.jobTemplate.metadata", text: map[string]string{
		"name":        "Of no effect: a Job is called after the CronJob and the time.",
		"namespace":   "Of no effect: a Job is made in the CronJob's namespace.",
		"labels":      "The labels of the Job.",
		"annotations": "The annotations of the Job.",
		"finalizers":  "Of no effect here.",
	}},
	{path: "JobTemplate.spec.tasks.[].template", keepMetadata: true},
	{path: "JobTemplate.spec.volumes.[].volumeClaim"},
	{path: "JobFlow.spec.flows.[].patch.jobSpec.tasks.[].template", keepMetadata: true},
	{path: "JobFlow.spec.flows.[].patch.jobSpec.volumes.[].volumeClaim"},
	{path: "CronJob.status.active.[]", text: map[string]string{
		"apiVersion": "The group and version of the Job.", "kind": "Job.", "name": "The name of the Job.",
		"namespace": "The namespace of the Job.",
		"uid":       "The UID of the Job.", "resourceVersion": "The version of the Job that was seen.", "fieldPath": "Of no use here.",
	}},
	{path: "Command.target", text: map[string]string{
		"apiVersion":         "The group and version of the object.",
		"kind":               "The kind of the object: Job or Queue.",
		"name":               "The name of the object.",
		"uid":                "The UID of the object.",
		"controller":         "Of no effect here.",
		"blockOwnerDeletion": "Of no effect here.",
	}},
	{path: "PodGroup.spec.subGroupPolicy.[].labelSelector", text: map[string]string{
		"matchLabels":                  "Labels that a pod must have, each with its value.",
		"matchExpressions":             "Conditions that a pod's labels must meet, all of them.",
		"matchExpressions.[]":          "A condition on one label.",
		"matchExpressions.[].key":      "The label's key.",
		"matchExpressions.[].operator": "In, NotIn, Exists or DoesNotExist.",
		"matchExpressions.[].values":   "The values for In and NotIn.",
	}},
	{path: "SchedulingPolicy.status.conditions", text: map[string]string{
		"[]":                    "One statement about the policy.",
		"[].type":               "What it is about: Compiled or Active.",
		"[].status":             "Whether it is so: True, False or Unknown.",
		"[].observedGeneration": "The generation of the policy that it is about.",
		"[].lastTransitionTime": "When its status last changed.",
		"[].reason":             "Why, as one word in CamelCase, for programs.",
		"[].message":            "Why, in words for people.",
	}},
}
