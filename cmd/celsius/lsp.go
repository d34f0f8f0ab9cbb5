package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/cmd/celsius/lsp"
)

func newLSPCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Help editors with policies, tables and other files of rules",
		Long: `Lsp speaks the Language Server Protocol over standard input and output: an
editor starts it, and shows mistakes at their places, completions, documentation
and where names are declared, while a policy is being written. docs/authoring.md
says how VS Code, Neovim and Helix start it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cache, err := os.UserCacheDir()
			if err != nil {
				cache = os.TempDir()
			}
			err = lsp.Serve(c.InOrStdin(), c.OutOrStdout(), lsp.Options{
				Version: version(), Delay: lsp.DefaultDelay, Cache: filepath.Join(cache, "celsius", "tables"), Log: c.ErrOrStderr(),
			})
			if err != nil {
				return fmt.Errorf("language server: %w", err)
			}
			return nil
		},
	}
}
