// Package cluster holds the commands about what is in a cluster: Jobs, Queues, pods, JobFlows and JobTemplates, and who uses how much. Each
// is there twice: with kubectl's habits (celsius job list -n team -o yaml), and with the names, flags and columns of Volcano's programs
// (vcctl, vsub, vjobs, vqueues, vcancel, vsuspend, vresume), so that scripts go on.
//
// Commands do only what their user could do with kubectl: they ask the API server as that user, and nobody else.
package cluster
