// Package manifest reads files of Kubernetes objects, and the short format of kind World, into the objects they stand for.
//
// All of it is checked strictly: unknown fields, wrong types, and what an object's own text can show to be wrong. Every
// mistake is a source.Issue with its place. What only a world can tell, such as a name that leads nowhere, is not its matter.
//
// Beside objects it knows how a pod's life is to be played where no kubelet runs it, which an annotation says.
package manifest
