// Package typed gives objects of an API to the rule language, typed by their OpenAPI schema: so a misspelt field in a row is found when
// the row is loaded. What rows of such objects share besides is here, too: variables, texts with CEL in them, and paths.
package typed
