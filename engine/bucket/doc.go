// Package bucket groups the tasks of a job that its owner wants near each other, and separates tasks that the owner wants apart. It reads
// the annotations of task topology about roles:
//
//	annotations of the PodGroup --> wishes --+
//	the job's tasks, and where they are -----+--> Buckets --> Fit: how many tasks of a task's bucket a node would have with it
package bucket
