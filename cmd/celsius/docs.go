package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/docs"
)

// newDocsCommand returns a command that writes the generated documents. It is for developers of Celsius.
func newDocsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "docs FOLDER",
		Short:  "Write the reference of the rule language, of the shipped tables and of the lifecycles",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := docs.Files()
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := os.WriteFile(filepath.Join(args[0], f.Name), f.Data, 0o644); err != nil {
					return fmt.Errorf("write document: %w", err)
				}
			}
			return nil
		},
	}
}
