// Package cluster contains the commands for objects in a cluster: Jobs, Queues, pods, JobFlows and JobTemplates, and resource usage. Each
// command exists twice. One form follows the conventions of kubectl (celsius job list -n team -o yaml). The other has the names, flags and
// columns of Volcano's programs (vcctl, vsub, vjobs, vqueues, vcancel, vsuspend, vresume), so that existing scripts continue to work.
//
// Commands can do only what their user can do with kubectl: they send all requests to the API server as that user.
package cluster
