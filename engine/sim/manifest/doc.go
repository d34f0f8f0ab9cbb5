// Package manifest reads files with Kubernetes objects, and the short format of kind World, and converts them to objects.
//
// All input is checked strictly: unknown fields, wrong types, and mistakes that an object's own text shows. Every mistake is a source.Issue
// with its place. This package does not check what depends on other objects, such as the name of a missing queue.
//
// It also defines the annotation that describes how a pod's life is simulated where no kubelet runs it.
package manifest
