// Command playground runs a whole cluster in one process: a real etcd, kube-apiserver and kube-controller-manager, KWOK instead of
// kubelets, and Celsius.
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
// The pieces start in this order, and stop in the opposite order (parts.go): the folder's lock (lock.go), the port, etcd, the API server,
// our CRDs (manifests.go), the controllers, KWOK, nodes (shape.go), the product. The data folder contains everything that must outlive the
// process: the data of etcd, certificates, tokens and keys (identity.go).
//
// Package bench measures the scheduler in such a cluster (bench.go starts it).
//
// The tests of this package are the end-to-end tests. A new test begins with newWorld in world_test.go.
package main
