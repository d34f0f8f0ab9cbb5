// Package oracle holds tests only: kube-scheduler's own plugins, as a library, are asked what the rows of the shipped
// tables are asked.
//
//	random cluster --deltas--> model.Cluster --> Session ----------+
//	               --mirror--> NodeInfos ------> the plugins ------+--> the same verdicts, the same normalised scores
//
// It is a package of its own because nothing else here may link the scheduler of Kubernetes.
package oracle
