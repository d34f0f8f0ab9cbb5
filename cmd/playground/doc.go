// Command playground is a whole cluster in one process: a real etcd, kube-apiserver and
// kube-controller-manager, KWOK in place of kubelets, and the product beside them.
//
//	               kubectl, tests                      celsius.dev/sim on a pod
//	                     |                                        |
//	+--------------------v--------------------+                   v
//	|  kube-apiserver  <-->  etcd (data dir)   |<--- KWOK: stages/*.yaml, sim.go
//	|        ^                                 |     pods start, become ready, end
//	|        +--- kube-controller-manager      |
//	|        +--- scheduler, controllers, webhook (product.go; not with --only control-plane)
//	+------------------------------------------+
//
// The pieces start in this order and stop in the opposite one (parts.go): the folder's lock
// (lock.go), the port, etcd, the API server, our CRDs (manifests.go), the controllers, KWOK,
// nodes (shape.go), the product. What has to outlive the process is in the data folder: the
// data of etcd, certificates, tokens and keys (identity.go).
//
// Package bench measures the scheduler in such a cluster (bench.go starts it).
//
// The tests of this package are the end-to-end tests; newWorld in world_test.go is where a
// new one starts.
package main
