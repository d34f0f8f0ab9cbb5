// Package dashboard shows a cluster as it is now, in a browser: queues, the line of jobs that wait, nodes, policies, and jobs with their
// stories.
//
//	API server --informers--> objects.go: the little that is shown of each --> state.go --once a second--> view.go: sections
//	scheduler  --its metrics, through the API server--> figures.go ------------^                             |
//	                                                                                                         v
//	browser <--events of sections that changed, and of cells of nodes that did--------------------- stream.go, server.go
//	        --a job, a queue, a node, a search--> detail.go, story.go
//
// Nothing is written to the cluster, and nothing is kept but in memory. What its user may not list is left out, and the right that is
// lacking is told.
package dashboard
