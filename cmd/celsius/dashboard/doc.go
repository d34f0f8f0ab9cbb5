// Package dashboard shows the present state of a cluster in a browser: queues, waiting jobs, nodes, policies, and jobs with their stories.
//
//	API server --informers--> objects.go: the few shown fields of each object --> state.go --once a second--> view.go: sections
//	scheduler  --its metrics, through the API server--> figures.go ----------------^                             |
//	                                                                                                             v
//	browser <--events of changed sections, and of changed cells of nodes-------------------------------- stream.go, server.go
//	        --a job, a queue, a node, a search--> detail.go, story.go
//
// The package writes nothing to the cluster, and stores data only in memory. It omits objects that its user may not list, and shows which
// permission is missing.
package dashboard
