// Package typed gives the rule language access to API objects, with types from their OpenAPI schema. A misspelled field in a row is
// therefore found when the row is loaded. The package also contains what rows of such objects share: variables, texts with CEL parts, and
// paths.
package typed
