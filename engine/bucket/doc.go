// Package bucket puts those tasks of a job together that its owner wants near each other, and keeps apart those that are to be apart, by
// what the annotations of task topology say of roles:
//
//	annotations of the PodGroup --> wishes --+
//	the job's tasks, and where they are -----+--> Buckets --> Fit: how many of a task's bucket a node would have with it
package bucket
