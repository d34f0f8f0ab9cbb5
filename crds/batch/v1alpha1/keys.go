package v1alpha1

// Keys of labels and annotations that controllers put on what belongs to a Job.
const (
	// TaskSpecKey, on a pod, is the name of its task.
	TaskSpecKey = "volcano.sh/task-spec"
	// TaskIndex, on a pod, is its number within the task, from 0.
	TaskIndex = "volcano.sh/task-index"
	// TaskPartitionID, on a pod, is the number of its partition within the task, from 0.
	TaskPartitionID = "volcano.sh/partition-id"
	// JobNameKey, on a pod, is the name of its Job.
	JobNameKey = "volcano.sh/job-name"
	// JobNamespaceKey, on a pod, is the namespace of its Job.
	JobNamespaceKey = "volcano.sh/job-namespace"
	// QueueNameKey, on a pod, is the queue of its Job.
	QueueNameKey = "volcano.sh/queue-name"
	// JobVersion, on a pod, is the Job's status.version at the time it was made; an event
	// of a pod of an older version is stale.
	JobVersion = "volcano.sh/job-version"
	// JobRetryCountKey, on a pod, is the Job's status.retryCount at that time.
	JobRetryCountKey = "volcano.sh/job-retry-count"
	// JobTypeKey, on a Job, as a label, says what kind of work it is.
	JobTypeKey = "volcano.sh/job-type"
	// PodTemplateKey, on a pod, is "<job>-<task>": pods of one value are alike.
	PodTemplateKey = "volcano.sh/template-uid"
	// JobForwardingKey, on a Job and its pods, is "true" where the queue sends them to
	// other clusters.
	JobForwardingKey = "volcano.sh/job-forwarding"
	// CronJobScheduledTimestampKey, on a Job of a CronJob, as an annotation, is when it was due, as RFC 3339.
	CronJobScheduledTimestampKey = "volcano.sh/cronjob-scheduled-timestamp"
	// ForwardClusterKey, on a pod, names the cluster that it was sent to.
	ForwardClusterKey = "volcano.sh/forward-cluster"
)

const (
	// PodgroupNamePrefix opens the name of a PodGroup that was made for bare pods.
	PodgroupNamePrefix = "podgroup-"
	// DefaultTaskSpec opens the name of a task that was given none: it is followed by
	// the task's number.
	DefaultTaskSpec = "default"
)
