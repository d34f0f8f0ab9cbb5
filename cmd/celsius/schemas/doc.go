// Package schemas writes JSON Schemas of all our kinds for editors, in draft-07, which yaml-language-server supports.
//
//	crds/manifests ----------------------------------------+
//	policy.Sites, Shape, Verbs, rules.RowKeys, Shipped ----+--> Schema --> celsius schema, completion in cmd/celsius/lsp
//	statemachines, jobplugin, webhook: Schema -------------+
//	manifest.ShortWorld, by reflection --------------------+
//
// All content comes from the declarations that the readers of the files use. Only the nesting of the parts of a file is defined here.
package schemas
