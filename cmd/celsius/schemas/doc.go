// Package schemas writes JSON Schemas of all our kinds, for editors: draft-07, which yaml-language-server takes.
//
//	crds/manifests ----------------------------------------+
//	policy.Sites, Shape, Verbs, rules.RowKeys, Shipped ----+--> Schema --> celsius schema, completion in cmd/celsius/lsp
//	statemachines, jobplugin, webhook: Schema -------------+
//	manifest.ShortWorld, by reflection --------------------+
//
// Nothing is said here that is not declared where files are read, but for which part of a file lies in which.
package schemas
