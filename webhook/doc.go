// Package webhook is the admission webhook. Before an object is stored, it fills in fields that a Job leaves open and refuses objects that
// cannot work.
//
//	API server --AdmissionReview--> endpoint --+-- /jobs/mutate       defaults of the table --> JSON patch
//	   ^                             (TLS)     +-- /jobs/validate     validations, warnings --> every mistake at once
//	   |                                       +-- /policies/validate the compiler of SchedulingPolicies
//	   |
//	   +-- webhook configurations <-- CA bundle <-- certificates <--> Secret, shared by all replicas
//
//	rules/admission/job.yaml --Load--> Table (rows, typed by the CRD's schema) --Default, Check--> changed object, Mistakes, warnings
//
// Rows in the rule language define what is filled in and what is refused. `object` and `oldObject` have types from the OpenAPI schema of
// the kind, so loading a table finds a misspelled field in a row. Checks that an expression cannot state are functions. Examples are
// whether Kubernetes would accept a pod template, and whether a graph has a cycle.
//
// The server first listens, and then writes its CA into the webhook configurations. From then on the API server calls it.
package webhook
