package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/cmd/celsius/schemas"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// anyKind is the name of the file with the schema for documents of all our kinds.
const anyKind = "all"

func newSchemaCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "schema [KIND] [--to FOLDER]",
		Short: "Print JSON Schemas of all kinds, for editors",
		Long: `Schema prints the JSON Schema (draft-07) of a kind, or lists the kinds. With
--to it writes KIND.json into a folder for each kind, and all.json, which looks
at a document's apiVersion and kind and holds of any of them. docs/authoring.md
says how editors are told of them.`,
		Example: "  celsius schema Job\n  celsius schema --to ~/.config/celsius/schemas",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := schemas.All()
			if err != nil {
				return fmt.Errorf("schemas: %w", err)
			}
			files := map[string]*schemas.Schema{}
			for kind, s := range all {
				files[strings.ToLower(kind)] = s
			}
			files[anyKind] = schemas.Any(all, func(kind string) string { return strings.ToLower(kind) + ".json" })
			switch {
			case len(args) > 0:
				name := strings.ToLower(args[0])
				if files[name] == nil {
					return usageError("there is no schema of %q; %s", args[0], source.Suggest(args[0], slices.Sorted(maps.Keys(all))))
				}
				files = map[string]*schemas.Schema{name: files[name]}
			case to == "":
				for _, kind := range slices.Sorted(maps.Keys(all)) {
					say(c.OutOrStdout(), "%s\t%s\n", kind, all[kind].Properties["apiVersion"].Const)
				}
				return nil
			}
			return writeSchemas(c, files, to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the folder to write them into, one file a kind")
	return c
}

// writeSchemas prints the schemas, or writes each into a file of a folder.
func writeSchemas(c *cobra.Command, files map[string]*schemas.Schema, to string) error {
	if to != "" {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return fmt.Errorf("write schemas: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := json.MarshalIndent(files[name], "", " ")
		if err != nil {
			return fmt.Errorf("schema of %s: %w", name, err)
		}
		text = append(text, '\n')
		if to == "" {
			say(c.OutOrStdout(), "%s", text)
			continue
		}
		if err := os.WriteFile(filepath.Join(to, name+".json"), text, 0o644); err != nil {
			return fmt.Errorf("write schema: %w", err)
		}
	}
	return nil
}
