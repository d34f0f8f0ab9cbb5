// Package webhook is admission: it fills in what a Job leaves open, and refuses what cannot work, before it is stored.
//
//	API server --AdmissionReview--> endpoint --+-- /jobs/mutate       defaults of the table --> JSON patch
//	   ^                             (TLS)     +-- /jobs/validate     validations, warnings --> every mistake at once
//	   |                                       +-- /policies/validate the compiler of SchedulingPolicies
//	   |
//	   +-- webhook configurations <-- CA bundle <-- certificates <--> Secret, shared by all replicas
//
//	rules/admission/job.yaml --Load--> Table (rows, typed by the CRD's schema) --Default, Check--> changed object, Mistakes, warnings
//
// What is filled in and what is refused is said by rows in the rule language. `object` and `oldObject` are typed from
// the OpenAPI schema of the kind, so a misspelt field in a row is found when the table is loaded. What an expression
// cannot say (whether Kubernetes would take a pod template; the cycle in a graph) is a function, which says what it
// computes from its arguments.
//
// The server listens first, then writes its CA into the configurations, which is what makes the API server call it.
package webhook
